"""targets.py PTXAS PROGRAM...: is each program's PTX for sm_90a where ptxas refuses it for sm_90, and for sm_90 elsewhere?"""
import re
import subprocess
import sys

ptxas, *programs = sys.argv[1:]
wrong = 0
hopper_only = []
for program in programs:
    with open(program, "rb") as file:
        data = file.read()
    texts = re.findall(rb"\.version [\d.]+\n\.target (\w+)([^\0]*)", data)
    if len(texts) != 1:
        sys.exit(f"{program} holds {len(texts)} texts of PTX, but must hold one")
    target, text = texts[0]
    refused = False
    if target != b"sm_90":  # nvcc has asked ptxas of the others
        asked = subprocess.run(
            [ptxas, "-arch=sm_90", "-o", "/dev/null", "/dev/stdin"],
            input=b".version 9.0\n.target sm_90" + text, stderr=subprocess.DEVNULL, check=False)
        refused = asked.returncode != 0
    if target != (b"sm_90a" if refused else b"sm_90"):
        wrong += 1
        print(f"{program} is built for {target.decode()}, but ptxas {'refuses' if refused else 'takes'} it for sm_90")
    if target == b"sm_90a" and "/07_" not in program:
        hopper_only.append(program.rpartition("/")[2])
print("of chapters 02 to 06 for compute_90a:", *hopper_only)
sys.exit(wrong > 0)
