#!/usr/bin/env python3
"""attention.py PROGRAM... : attention beside PyTorch's scaled_dot_product_attention, as CSV.

Each PROGRAM is measured with --bench, and each of PyTorch's backends in turn, at 16,384 tokens in all and 2,048
columns of heads: lengths 512 to 16,384, head dimensions 64 and 128, causal and full. TFLOP/s; the last column is the
last program relative to PyTorch's best. Where torch is not installed, its columns are empty."""
import os
import re
import statistics
import subprocess
import sys

try:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    BACKENDS = {"PyTorch flash": SDPBackend.FLASH_ATTENTION, "PyTorch cuDNN": SDPBackend.CUDNN_ATTENTION}
except ImportError:
    torch, BACKENDS = None, {"PyTorch flash": None, "PyTorch cuDNN": None}

TOKENS, COLUMNS = 16384, 2048
ROUNDS, LAUNCHES = 7, 5  # as in attention_program.cuh


def measure_torch(backend, batch, heads, length, dim, causal):
    """The median of several rounds, in TFLOP/s; None if the backend refuses."""
    shape = (batch, heads, length, dim)
    q, k, v = (torch.randn(shape, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    times = []
    try:
        with torch.no_grad(), sdpa_kernel(backend):
            for _ in range(ROUNDS):
                begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
                torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                begin.record()
                for _ in range(LAUNCHES):
                    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)
                end.record()
                end.synchronize()
                times.append(begin.elapsed_time(end) / LAUNCHES)
    except RuntimeError:
        return None
    operations = 4 * batch * heads * length * length * dim / (2 if causal else 1)
    return operations / statistics.median(times) * 1e-9


def measure_program(program, batch, heads, length, dim, causal):
    command = [program, "--bench", f"--batch={batch}", f"--heads={heads}", f"--length={length}", f"--dim={dim}"]
    output = subprocess.run(command + ["--causal"] * causal, capture_output=True, text=True, check=True).stdout
    return float(re.search(r"([0-9.]+) TFLOP/s", output).group(1))


def main():
    programs = sys.argv[1:]
    if not programs:
        sys.exit(__doc__)
    names = [os.path.basename(program) for program in programs]
    print(",".join(["dim", "mask", "length", *names, *BACKENDS, "share"]))
    for dim in 64, 128:
        for causal in False, True:
            for length in 512, 1024, 2048, 4096, 8192, 16384:
                shape = TOKENS // length, COLUMNS // dim, length, dim, causal
                theirs = [measure_torch(backend, *shape) if torch else None for backend in BACKENDS.values()]
                ours = [measure_program(program, *shape) for program in programs]
                best = max((value for value in theirs if value), default=None)
                share = f"{ours[-1] / best:.2f}" if best else ""
                numbers = [f"{value:.0f}" if value else "" for value in ours + theirs]
                print(",".join([str(dim), "causal" if causal else "full", str(length), *numbers, share]), flush=True)


if __name__ == "__main__":
    main()
