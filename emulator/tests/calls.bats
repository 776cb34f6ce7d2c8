#!/usr/bin/env bats
# The calls of the runtime, the driver and NVRTC: each works or ends with a message that names it.

load helpers

setup() {
  begin_test
  programs=build/emulator/tests
  recorded=emulator/tests/recorded
  toolkit=$(find_toolkit)
}

# Every function that the headers declare, for both meanings of stream 0. The preprocessor reads them
# here and not in a make target, because they are the toolkit's of the day.
declared() {
  local header mode
  for header in cuda.h cuda_runtime_api.h cudaProfiler.h cuda_profiler_api.h; do
    for mode in PLAIN CUDA_API_PER_THREAD_DEFAULT_STREAM; do
      echo "#include <$header>" | gcc -D$mode -E -P -I"$toolkit/include" -xc - |
        grep -oE '\bcu(da)?[A-Z][A-Za-z0-9_]* *\(' | tr -d ' ('
    done
  done | sort -u
}

@test "every function of the toolkit's headers is exported: none ends as an undefined symbol" {
  nm -D --defined-only build/emulator/libcudart.so.13 | sed 's/.* //; s/@.*//' |
    sort -u >"$BATS_TEST_TMPDIR/exported"
  declared >"$BATS_TEST_TMPDIR/declared"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/declared")" -gt 800 ]
  run comm -23 "$BATS_TEST_TMPDIR/declared" "$BATS_TEST_TMPDIR/exported"
  [ -z "$output" ]
}

@test "calls of the driver in the forms of older versions: what a program gets who asks for them" {
  run -0 common/make/run-program $programs/driver_versions
  [[ $output == *"PASS driver_versions: "* ]]
}

@test "before cuInit, without a context, with a destroyed one and in a forked child calls are refused" {
  run -0 emulator/emulate $programs/without_context
  [ "$output" = "PASS without_context: 4 situations" ]
}

@test "launches with wrong arguments or attributes, and texts that are no module, answer as recorded" {
  run -0 --separate-stderr emulator/emulate $programs/wrong_launches
  diff <(echo "$output") $recorded/wrong_launches.txt
}

# On a GPU these calls end the program, too.
@test "a call that is given a pointer to nowhere ends with a line that names it and the address" {
  local case
  for case in list:cudaLaunchKernel argument:cudaLaunchKernel attributes:cudaLaunchKernelExC \
    configuration:cuLaunchKernelEx extra:cuLaunchKernel cooperative:cuLaunchCooperativeKernel \
    text:cuModuleLoadData sizes:cuTensorMapEncodeTiled answer:cudaMemGetInfo \
    "function:a call for a host function (such as cudaLaunchHostFunc)"; do
    LD_LIBRARY_PATH=build/emulator run $programs/wrong_launches "${case%%:*}"
    echo "$case: $output"
    [ "$status" -eq 139 ]
    [ "${#lines[@]}" -eq 1 ]
    [[ $output == "emulator: ${case#*:} was given a wrong pointer: there is nothing at address 0x"[45]0 ]]
  done
}

@test "a fault of the program's own is not a call's" {
  LD_LIBRARY_PATH=build/emulator run -139 $programs/wrong_launches own
  [ -z "$output" ]
}

# A library with static thread-local storage cannot be loaded by a running process, such as Python.
@test "a process that is running can load the emulator: it has no static thread-local storage" {
  local library
  for library in $(find build/emulator -name libcudart.so.13); do
    run -0 readelf -d "$library"
    [[ $output == *"(SONAME)"* ]]
    [[ $output != *STATIC_TLS* ]]
  done
}

@test "the emulator knows each form of a driver call that is newer than CUDA 12.0, or refuses the call" {
  # name.version, without those for a default stream of each thread
  grep -ohE 'PFN_cu[A-Za-z0-9_]+_v[0-9]+\)' "$toolkit/include/cudaTypedefs.h" |
    sed -E 's/PFN_(.*)_v([0-9]+)\)/\1.\2/' | grep -v '_pts[dz]\|_ptds' | sort -u >"$BATS_TEST_TMPDIR/all"
  awk -F. '{ forms[$1]++; if ($2 > 12000) newer[$1] = 1 }
           END { for (call in newer) if (forms[call] > 1) print call }' "$BATS_TEST_TMPDIR/all" >"$BATS_TEST_TMPDIR/newer"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/newer")" -gt 10 ]
  nm build/emulator/libcudart.so.13 | sed -n 's/.* refused_//p' >"$BATS_TEST_TMPDIR/refused"
  while read -r call; do
    grep -q "{\"$call\", {" emulator/runtime/driver_versions.c ||
      grep -qxE "${call}(_v[0-9])?" "$BATS_TEST_TMPDIR/refused" || echo "$call"
  done <"$BATS_TEST_TMPDIR/newer" >"$BATS_TEST_TMPDIR/missing"
  cat "$BATS_TEST_TMPDIR/missing"
  [ ! -s "$BATS_TEST_TMPDIR/missing" ]
}

@test "the emulator calls its own functions, whatever other runtime a program has loaded" {
  cat >"$BATS_TEST_TMPDIR/other.c" <<'END'
int cudaGetDeviceCount(int *count) { return *count = 99; }
END
  cat >"$BATS_TEST_TMPDIR/program.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
  void *driver;
  if (argc < 2 || !dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL)) return puts(dlerror()), 2;
  if (!(driver = dlopen("libcuda.so.1", RTLD_NOW))) return puts(dlerror()), 2;
  int (*initialise)(unsigned), (*count_devices)(int *), count = 0;
  *(void **)&initialise = dlsym(driver, "cuInit");
  *(void **)&count_devices = dlsym(driver, "cuDeviceGetCount");
  if (initialise(0) != 0) return puts("not initialised"), 2;
  printf("answer %d, ", count_devices(&count));
  printf("devices %d\n", count);
  return 0;
}
END
  gcc -shared -fPIC -o "$BATS_TEST_TMPDIR/other.so" "$BATS_TEST_TMPDIR/other.c"
  gcc -o "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/program.c" -ldl
  run emulator/emulate "$BATS_TEST_TMPDIR/program" "$BATS_TEST_TMPDIR/other.so"
  [ "$output" = "answer 0, devices 1" ]
}

@test "the driver: constant memory" {
  run -0 common/make/run-program $programs/driver_calls
  [[ $output == *"PASS driver_calls: "* ]]
}

@test "occupancy counts registers, threads and shared memory as NVIDIA's cuda_occupancy.h does" {
  run -0 common/make/run-program $programs/occupancy
  [[ $output == *"PASS occupancy: "* ]]
}

# $1: which call, $2: its name, $3: the reason
refusal_is_named() {
  run -1 emulator/emulate $programs/driver_calls --unknown "$1"
  [[ $output == *"emulator: the program calls $2, which the emulator does not know: $3"* ]]
}

@test "a call that is not known: its name and the reason, exit 1" {
  refusal_is_named 1 cuGreenCtxCreate "parts of a device (green contexts) are not emulated"
  refusal_is_named 2 cuTexRefCreate "texture and surface references were removed in CUDA 12"
  refusal_is_named 3 cuGraphConditionalHandleCreate "a graph is a captured stream (cudaStreamBeginCapture)"
  refusal_is_named 4 cudaGraphAddKernelNode "a graph is a captured stream (cudaStreamBeginCapture)"
  refusal_is_named 5 cudaMemPoolDestroy "there is one memory pool: call cudaMallocAsync"
  refusal_is_named 6 cudaMallocArray "textures, surfaces and CUDA arrays are not emulated"
  refusal_is_named 7 cuTexObjectCreate "textures, surfaces and CUDA arrays are not emulated"
  refusal_is_named 9 cuMemMap "virtual memory (cuMemMap) is not emulated: use cudaMalloc"
  refusal_is_named 10 cuLinkDestroy "the driver's linker is not emulated"
  refusal_is_named 11 cuStreamSynchronize_ptsz "the program is built with --default-stream per-thread"
  refusal_is_named 8 cuMemcpy2D_v2 "call the runtime's for rows: cudaMemcpy2D"
}

@test "each call that is refused has a reason" {
  awk -F'[()]' '/^#define REASON/ { first = 1 } first && /^(NO|BOTH)\(/ { print ($1 == "BOTH" ? "cu" $2 : $2); first = 0 }' \
    emulator/runtime/unknown_calls.c >"$BATS_TEST_TMPDIR/calls"
  [ "$(wc -l <"$BATS_TEST_TMPDIR/calls")" -gt 20 ] # one of each reason
  while read -r call; do
    run -1 python3 -c "import ctypes, sys; getattr(ctypes.CDLL('build/emulator/libcudart.so.13'), '$call')()"
    [[ $output == "emulator: the program calls $call, which the emulator does not know: "?????* ]]
  done <"$BATS_TEST_TMPDIR/calls"
}

@test "a program that is linked with a call that is refused: said when it starts, and it runs until it makes the call" {
  local reason="textures, surfaces and CUDA arrays are not emulated: read plain memory instead"
  run -0 --separate-stderr emulator/emulate build/emulator/tests/refused_calls
  [ "$output" = "refused_calls: the end" ]
  [ "$stderr" = "emulator: the program is linked with cudaMallocArray, and ends where it calls it: $reason" ]
  run -1 --separate-stderr emulator/emulate build/emulator/tests/refused_calls now
  [ -z "$output" ]
  [ "${stderr_lines[1]}" = "emulator: the program calls cudaMallocArray, which the emulator does not know: $reason" ]
}

@test "callbacks of streams run in order, and a stream has a device and a context" {
  run -0 --separate-stderr emulator/emulate build/emulator/tests/stream_callbacks
  [ "${lines[0]}" = "called 2 times: 1 2, status 0 0, added 0" ]
  [ "${lines[1]}" = "device 0, the driver's the same, context the current one" ]
  [ "${lines[2]}" = "with flags: cudaErrorInvalidValue" ]
  [ "${lines[3]}" = "no function: cudaErrorInvalidValue" ]
  [ "${lines[4]}" = "in a capture: cudaErrorStreamCaptureUnsupported" ]
  [ -z "$stderr" ]
}

@test "a kernel that is launched again and again: a note once it has taken EMULATOR_PATIENCE seconds" {
  run -0 build/emulator/tests/repeats
  [ "$output" = "PASS repeats: 6 cases, 0 wrong" ]
  EMULATOR_PATIENCE=1 emulator/emulate build/emulator/tests/repeated_launches 2>"$BATS_TEST_TMPDIR/err" &
  local program=$! waited=0
  while ! grep -q 'EMULATOR_PATIENCE is' "$BATS_TEST_TMPDIR/err" && [ $waited -lt 1200 ]; do
    sleep 0.1
    waited=$((waited + 1))
  done
  kill $program
  wait $program || true
  grep -qE "^emulator: reduce has been launched [0-9]+ times, which took [0-9]+ s so far, [0-9.]+ ms each\. The emulator is not for benchmarks" \
    "$BATS_TEST_TMPDIR/err"
  [ "$(grep -c 'EMULATOR_PATIENCE is' "$BATS_TEST_TMPDIR/err")" -eq 1 ]
}

@test "refused launches: the error, and once for each kernel and reason the limit and what to do" {
  run -0 --separate-stderr emulator/emulate build/emulator/tests/refused_launches
  [ "$output" = "$(cat emulator/tests/recorded/refused_launches.txt)" ]
  diff <(echo "$stderr") emulator/tests/recorded/refused_launches.report.txt
}

@test "a program with NVIDIA's runtime linked into it: how to build it" {
  LD_LIBRARY_PATH=build/emulator run -1 $programs/outside/static_runtime
  [[ $output == *"static_runtime has a copy of CUDA's runtime linked into it"* ]]
  [[ $output == *"nvcc -cudart shared"* ]]
}

@test "cuBLAS: why it does not run" {
  [ -e $programs/outside/cublas ] || skip "the toolkit has no cuBLAS"
  libraries=$(dirname "$(find -L "$toolkit" -name libcublas.so | head -n 1)")
  LD_LIBRARY_PATH=$libraries run -1 emulator/emulate $programs/outside/cublas
  [[ $output == *"the library libcublas.so.13 brings its own copy of CUDA's runtime"* ]]
  [[ $output == *"machine code, without PTX"* ]]
}

@test "NVRTC for a real architecture: its PTX runs where the program asks for the cubin" {
  [ -e $programs/outside/cubin ] || skip "the toolkit has no NVRTC"
  libraries=$(dirname "$(find -L "$toolkit" -name libnvrtc.so | head -n 1)")
  LD_LIBRARY_PATH=$libraries run -0 emulator/emulate $programs/outside/cubin
  [[ $output == *"PASS cubin"* ]]
}

@test "NVRTC for other architectures: a cubin runs on its own major number only, PTX on all later devices" {
  [ -e $programs/outside/cubin ] || skip "the toolkit has no NVRTC"
  libraries=$(dirname "$(find -L "$toolkit" -name libnvrtc.so | head -n 1)")
  local case
  for case in "sm_90" "sm_80 ptx" "sm_90a ptx"; do
    LD_LIBRARY_PATH=$libraries run emulator/emulate $programs/outside/cubin $case
    echo "$case: $output"
    [ "$output" = "PASS cubin: NVRTC's code ran" ]
  done
  for case in "sm_80:209" "sm_100:209" "sm_100a:209" "sm_100 ptx:218"; do
    LD_LIBRARY_PATH=$libraries run emulator/emulate $programs/outside/cubin ${case%:*}
    echo "$case: $output"
    [ "$output" = "cuModuleLoadData answers ${case#*:}" ]
  done
}

@test "dynamic parallelism: named, with the reason; the program's other kernels run" {
  run -1 emulator/emulate $programs/outside/nested
  [[ $output == *"this kernel launches kernels itself"*"(dynamic parallelism)"* ]]
  run -0 emulator/emulate $programs/outside/nested plain
}

# unloaded CASE ERROR TEXT: what the driver answers, and what stderr says
unloaded() {
  LD_LIBRARY_PATH=build/emulator run $programs/unload_cases "$1"
  echo "$1: $output"
  [ "$status" -eq 0 ] || return 1
  grep -qx -- "$2" <<<"$output" || return 1
  [[ "$(tr -s '\n ' '  ' <<<"$output")" == *"$3"* ]] || return 1
  [ -n "$3" ] || [ "$output" = "$2" ]
}

@test "a module that was unloaded: its kernels and variables are gone, and a message says so" {
  unloaded launch_after 400 "use-after-unload: the kernel scale is used, but its module was unloaded"
  unloaded library_launch_after 400 "use-after-unload: the kernel scale is used, but its library was unloaded"
  unloaded graph_after 400 "use-after-unload: the kernel scale"
  unloaded attribute_after 400 "use-after-unload: the kernel scale"
  unloaded function_found_after 400 ""
  unloaded variable_copied_after 1 ""
  unloaded variable_read_after 700 "use-after-free: kernel read_at"
}

@test "a module is unloaded after the work that uses it, once, and not from under its library" {
  unloaded unloaded_after_launch 0 ""
  unloaded unloaded_twice 400 ""
  unloaded module_of_library 800 ""
}

# Two modules: that of the first launch is loaded, and of the other only the names of its instructions are looked at.
@test "kernels with refused instructions are named at the first launch of the program, which runs until it launches one" {
  cat >"$BATS_TEST_TMPDIR/first.cu" <<'CU'
__global__ void first(int *out) { *out = 1; }
__global__ void adds(int *out) { asm("vadd2.u32.u32.u32 %0, %0, %0, %0;" : "+r"(*out)); }
int main(int count, char **) {
  int *out;
  cudaMalloc(&out, 4);
  for (int i = 0; i < 2; i++) first<<<1, 1>>>(out);
  if (count > 1) adds<<<1, 1>>>(out);
  return cudaDeviceSynchronize();
}
CU
  cat >"$BATS_TEST_TMPDIR/second.cu" <<'CU'
template <int n> __global__ void fine(int *out) { *out = n; } // tex.2d is not here:
template __global__ void fine<3>(int *);
__global__ void reads(float *out, unsigned long long tex) {
  asm volatile("{ .reg .pred vadd;\nL1: setp.eq.u32 vadd, 1, 1; @vadd tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %5}]; }"
               : "=f"(out[0]), "=f"(out[1]), "=f"(out[2]), "=f"(out[3]) : "l"(tex), "f"(1.0f));
}
CU
  cd "$BATS_TEST_TMPDIR"
  local emulate=$OLDPWD/emulator/emulate said="emulator: a kernel is refused, and the program ends where it launches it: module"
  run -0 --separate-stderr "$emulate" --with second.cu -rdc=false first.cu
  [ "$(grep -c . <<<"$stderr")" -eq 3 ]
  grep -qxF "$said 2 of the program: reads: tex.2d.v4.f32.f32: textures and surfaces are not emulated: read plain memory instead" <<<"$stderr"
  [[ $stderr == *"$said 1 of the program: adds: PTX line "*"of the video instructions, only vabsdiff2"* ]]
  run -1 --separate-stderr "$emulate" --with second.cu -rdc=false first.cu now
  [ "$(grep -c "only vabsdiff2" <<<"$stderr")" -eq 2 ]
}
