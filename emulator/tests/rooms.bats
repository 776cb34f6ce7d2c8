#!/usr/bin/env bats
# The folders of the emulator: calls go in one direction.

load helpers

setup() {
  begin_test
  rooms=emulator/rooms
  sources=$BATS_TEST_TMPDIR/sources
  objects=$BATS_TEST_TMPDIR/objects
}

# The emulator's files of this name, without those of its tests.
sources() { # NAME
  find emulator -path emulator/tests -prune -o -name "$1" -print | sort
}

# A file of a small emulator, from stdin, compiled: the object files are what `rooms check` reads.
write_file() {
  mkdir -p "$sources/${1%/*}" "$objects/${1%/*}"
  cat >"$sources/$1"
  case $1 in *.c) cc -c -I"$sources" -o "$objects/${1%.c}.o" "$sources/$1" ;; esac
}

@test "no folder uses one above it" {
  run -0 "$rooms" check
  [[ $output == *"base ptx state"*"load machine clock record"*"checker/order checker/undefined"*"checker explore runtime"* ]]
}

@test "the machine links and runs without those who watch, and announces what each instruction accesses" {
  run -0 build/emulator/tests/observed
  [[ $output =~ ^1[0-9]{2}\ forms\ announce\ what\ they\ access$ ]]
}

@test "a call of a folder above is refused: both functions and both objects are named" {
  write_file machine/run.c <<<'int run(void) { return 1; }'
  write_file base/memory.c <<<'int run(void); int allocate(void) { return run() + 1; }'
  run -1 "$rooms" check "$objects" "$sources"
  [[ $output == *"base/memory.o (allocate) uses run of machine/run.o, but base is below machine"* ]]
}

@test "a table of a folder above is refused, and a function that a table names" {
  write_file runtime/names.c <<<'int names[3]; int name(void) { return 0; }'
  write_file checker/look.c <<<'extern int names[]; int *look(void) { return &names[1]; }'
  write_file flow/table.c <<<'int name(void); int (*const table[])(void) = {name};'
  run -1 "$rooms" check "$objects" "$sources"
  [[ $output == *"checker/look.o (look) uses names of runtime/names.o"* ]]
  [[ $output == *"flow/table.o (table) uses name of runtime/names.o"* ]]
}

@test "a header of a folder above is refused" {
  write_file load/module.h <<<'typedef int Module;'
  write_file ptx/parse.c <<<$'#include "load/module.h"\nModule parse(void) { return 0; }'
  run -1 "$rooms" check "$objects" "$sources"
  [[ $output == *"ptx/parse.c includes load/module.h, but ptx is below load"* ]]
}

@test "a folder within a folder is a room: it may not be called from below, and others enter it by one header" {
  write_file checker/order/order.h <<<'int now(void);'
  write_file checker/order/clocks.h <<<'int tick(void);'
  write_file checker/order/clocks.c <<<'int race(void); int now(void) { return race(); }'
  write_file checker/shared/races.c <<<$'#include "checker/order/order.h"\n#include "checker/order/clocks.h"\nint race(void) { return 1; }'
  run -1 "$rooms" check "$objects" "$sources"
  [[ $output == *"checker/order/clocks.o (now) uses race of checker/shared/races.o, but checker/order is below checker/shared"* ]]
  [[ $output == *"checker/shared/races.c includes checker/order/clocks.h, but others enter checker/order by checker/order/order.h"* ]]
  [[ $output != *"includes checker/order/order.h"* ]]
}

@test "a folder within a folder offers at most 15 functions, and 15 inline ones" {
  for i in {1..16}; do echo "int call_$i(void); static inline int ask_$i(void) { return $i; }"; done |
    sed 's/; static/;\nstatic/' | write_file checker/order/order.h
  for i in {1..16}; do echo "int call_$i(void) { return $i; }"; done | write_file checker/order/order.c
  for i in {1..15}; do echo "int use_$i(void) { return call_$i() + ask_$i(); }"; done |
    sed '1i #include "checker/order/order.h"' | write_file explore/run.c
  run -0 "$rooms" check "$objects" "$sources"
  write_file explore/call.c <<<$'#include "checker/order/order.h"\nint use_16(void) { return call_16() + ask_16(); }'
  run -1 "$rooms" check "$objects" "$sources"
  [[ $output == *"wide: other folders call 16 compiled functions of checker/order, more than 15: "*"call_16"* ]]
  [[ $output == *"wide: other folders call 16 inline functions of checker/order, more than 15: "*"ask_16"* ]]
}

@test "no folder of the checker reaches into the state of another one" {
  run -1 bash -c "cd emulator && grep -nE 'check->order\.' \
    checker/*.c checker/{undefined,shared,lanes,global}/*.[ch]"
  run -1 bash -c "cd emulator && grep -nE 'check->lanes->' checker/*.c checker/{order,undefined,shared,global}/*.[ch]"
}

@test "calls of folders below are fine, and objects whose source is gone do not count" {
  write_file base/memory.c <<<'int allocate(void) { return 1; }'
  write_file machine/run.c <<<'int allocate(void); int run(void) { return allocate(); }'
  write_file base/old.c <<<'int run(void); int old(void) { return run(); }'
  rm "$sources/base/old.c"
  run -0 "$rooms" check "$objects" "$sources"
}

@test "a folder that the list does not have is refused" {
  write_file base/memory.c <<<'int allocate(void) { return 1; }'
  write_file attic/run.c <<<'int allocate(void); int run(void) { return allocate(); }'
  run -1 "$rooms" check "$objects" "$sources"
  [[ $output == *"attic is not in the list of folders"* ]]
}

@test "wrong arguments print the usage, exit code 2" {
  run -2 "$rooms" climb
  [[ $output == *"usage: rooms check"* ]]
}

# The code of INSIDE.md's section on adding an instruction that begins with this line.
readme_code() {
  awk -v first="$1" '
    /^## / { inside = /To add an instruction/ }
    inside && /^```$/ { shown = 0 }
    inside && index($0, first) == 1 { shown = 1 }
    shown' emulator/INSIDE.md
}

@test "INSIDE.md's example of an instruction is the code of the emulator" {
  function_text=$(readme_code 'HANDLER1(')
  line=$(readme_code 'OP(')
  [ -n "$line" ]
  [[ $(<emulator/arithmetic/alu_bits.c) == *"$function_text"* ]]
  [[ $(<emulator/ptx/opcodes.def) == *$'\n'"$line"$'\n'* ]]
}

# Compiling is what is tested here: two changed files make an emulator that knows one more instruction.
@test "a new instruction is a function and a line" {
  cp -r emulator "$sources"
  readme_code 'HANDLER1(' | sed 's/brev/mirror/g' >>"$sources/arithmetic/alu_bits.c"
  readme_code 'OP(' | sed 's/brev/mirror/g' >>"$sources/ptx/opcodes.def"
  for name in arithmetic/alu_bits ptx/opcodes load/instructions; do
    mkdir -p "$objects/${name%/*}"
    cc -std=c11 -D_GNU_SOURCE -O1 -Wall -Wextra -Werror -I"$sources" -c "$sources/$name.c" \
      -o "$objects/$name.o"
  done
  others=$(find build/objects -name '*.o' ! -name alu_bits.o ! -name opcodes.o \
    ! -name instructions.o)
  others=$(for object in $others; do
    source=${object#build/objects/}
    if [ -e "${source%.o}.c" ]; then echo "$object"; fi
  done)
  # shellcheck disable=SC2086
  cc -std=c11 -D_GNU_SOURCE -Iemulator -Icommon emulator/tests/run_ptx.c \
    $others "$objects"/*/*.o -o "$BATS_TEST_TMPDIR/run_ptx" ${SANITIZE:-} -pthread -ldl -lm
  ptx <<'EOF'
.entry mirrors(.param .u64 out) {
  .reg .b32 %r<3>; .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [out];
  mov.b32 %r1, 0x80000005; mirror.b32 %r2, %r1;
  st.global.b32 [%rd1], %r2;
  ret;
}
EOF
  run -0 "$BATS_TEST_TMPDIR/run_ptx" "$module" mirrors 1 1 buffer:u32:1
  [ "${lines[1]}" = "0: 2684354561" ]
  run build/emulator/tests/run_ptx "$module"
  [[ $output == *"does not know the instruction mirror"* ]]
}

@test "the name of a shared array does not change what is reported" {
  for name in tile ldmatrix_buffer; do
    ptx <<EOF
.global .align 4 .u32 seen;
.entry reads() {
  .shared .align 4 .b8 $name[128];
  .reg .b32 %r<3>; .reg .pred %p<2>;
  ld.shared.u32 %r1, [$name];
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra end;
  mov.u32 %r2, 1;
  st.global.u32 [seen], %r2;
end:
  ret;
}
EOF
    run build/emulator/tests/run_ptx "$module" reads 1 32
    [[ $output == *"uninitialised-read"*"[$name]"* ]]
  done
}

@test "comments name files that exist" {
  missing=$(cat $(sources '*.[ch]') $(sources '*.def') | grep -v '^#include' |
    grep -oE '\b[a-z_0-9]+\.(c|h|def)\b($|[^[])' | sed 's/[^a-z]*$//' | sort -u |
    while read -r name; do
      [ -n "$(find common emulator tests -name "$name" -print -quit)" ] || echo "$name"
    done)
  echo "$missing"
  [ -z "$missing" ]
}

# Comments alone (COMMENTS=1), or everything but comments and texts.
parts_of_sources() { # COMMENTS FILE...
  awk -v comments="$1" '
    FNR == 1 { inside = 0 }
    {
      rest = $0
      if (!inside) gsub(/"([^"\\]|\\.)*"/, "\"\"", rest)
      kept = ""
      while (rest != "") {
        at = inside ? index(rest, "*/") : match(rest, /\/\*|\/\//)
        line_comment = !inside && at && substr(rest, at, 2) == "//"
        part = at ? substr(rest, 1, at - 1) : rest
        if (inside == comments) kept = kept part " "
        rest = at ? substr(rest, at + 2) : ""
        if (line_comment) {
          if (comments) kept = kept rest
          rest = ""
        } else if (at) {
          inside = !inside
        }
      }
      print kept
    }' "${@:2}"
}

@test "comments name functions that exist" {
  sources=$(ls common/*.[ch] $(sources '*.[ch]') $(sources '*.def'))
  parts_of_sources 0 $sources | grep -oE '\b[A-Za-z_][A-Za-z0-9_]*' | sort -u >"$BATS_TEST_TMPDIR/code"
  parts_of_sources 1 $sources | grep -oE '\b[A-Za-z_][A-Za-z0-9_]*\(\)' | tr -d '()' | sort -u >"$BATS_TEST_TMPDIR/named"
  [ -s "$BATS_TEST_TMPDIR/code" ]
  [ -s "$BATS_TEST_TMPDIR/named" ]
  # What is not the emulator's own must be a function of CUDA, whose headers may be links (-R).
  missing=$(comm -13 "$BATS_TEST_TMPDIR/code" "$BATS_TEST_TMPDIR/named" | while read -r name; do
    grep -RqwF --include='*.h' --include='*.hpp' -- "$name" "$(find_toolkit)/include" || echo "$name"
  done)
  echo "$missing"
  [ -z "$missing" ]
}

@test "a function that only its own file uses is static, and none is there for nothing" {
  for object in build/objects/emulator/{*,*/*}/*.o; do
    source=${object#build/objects/}
    if [ -e "${source%.o}.c" ]; then nm "$object"; fi
  done | awk '
    $1 == "U" { used[$2] = 1 }
    NF == 3 && $2 ~ /[TDBR]/ { defined[$3] = 1 }
    END { for (name in defined) if (!(name in used)) print name }' |
    grep -vE '^(_?cu|__cuda|nvrtc|nvml|nvJitLink|emulator_|tensor_map_named$|__odr_asan\.)' | while read -r name; do
    grep -qw -- "$name" emulator/tests/*.c || echo "$name"
  done >"$BATS_TEST_TMPDIR/alone"
  cat "$BATS_TEST_TMPDIR/alone"
  [ ! -s "$BATS_TEST_TMPDIR/alone" ]
}

# What is in a section for data that changes, but for what the linker alone writes (rel.ro).
@test "fewer than 60 objects of file scope can change; what they are is printed" {
  for object in build/objects/emulator/{*,*/*}/*.o; do
    source=${object#build/objects/}
    if [ -e "${source%.o}.c" ]; then objdump -t "$object" | sed "s|^|${source%.o}.c |"; fi
  done | awk '/\.t?(bss|data)(\.[a-z_.0-9]*)?\t/ && !/rel\.ro/ && !/ d  \./ && $NF !~ /^__?asan|^\.|^\*/ { print $1, $NF }' \
    >"$BATS_TEST_TMPDIR/objects"
  cat "$BATS_TEST_TMPDIR/objects"
  [ -s "$BATS_TEST_TMPDIR/objects" ]
  [ "$(wc -l <"$BATS_TEST_TMPDIR/objects")" -lt 60 ]
}

# A function begins with a line that has "(" and ends with "}" alone, both at the left edge.
long_functions() { # FILE...
  awk '
    FNR == 1 || /^$/ && FNR == start + 1 { start = 0 }
    !start && /^(extern "C" )?[A-Za-z_][A-Za-z_0-9 *]*\(/ && !/^[A-Z_0-9]+\(/ && !/^(typedef|struct|enum|union|extern [^"])|[;=]/ { start = FNR; name = $0 }
    start && /^}/ {
      if (FNR - start + 1 > 60) print FILENAME ":" start ": " FNR - start + 1 " lines: " name
      start = 0
    }
  ' "$@"
}

@test "no function is longer than 60 lines" {
  run -0 long_functions common/*.c $(sources '*.c')
  [ -z "$output" ]
}

@test "no function of the emulator's test programs is longer than 60 lines" {
  # Kernels that are one list of cases, and two that are whole pipelines as others write them.
  lists="bulk_cases correct_pipelines foreign_gemm"
  files=()
  for file in emulator/tests/*.c emulator/tests/*.cu; do
    name=$(basename "$file")
    [[ " $lists " == *" ${name%.*} "* ]] || files+=("$file")
  done
  run -0 long_functions "${files[@]}"
  [ -z "$output" ]
}

# What decodes an instruction reads its text; all others ask for its traits. The device's own functions have names.
@test "no instruction is known by its text but where it is decoded" {
  run bash -c "grep -nE '(has_modifier|strn?cmp|strstr)\(.*(->|\.)(text|modifiers)\b|has_modifier\(' \
    emulator/{state,checker,checker/*,record,clock,machine}/*.c"
  [ -z "$output" ]
}

@test "rules.def has each rule once, and each is reported" {
  rules=$(emulator/write-checks --rules | cut -d' ' -f1)
  [ "$(wc -l <<<"$rules")" -gt 100 ]
  [ -z "$(sort <<<"$rules" | uniq -d)" ]
  reported=$(grep -ohE '\bRULE\([A-Z_0-9]+\)' $(sources '*.[ch]') | sort -u)
  unknown=$(comm -23 <(tr a-z- A-Z_ <<<"$rules" | sed 's/.*/RULE(&)/' | sort) <(echo "$reported"))
  [ -z "$unknown" ] || sed 's/.*/no source reports &: call finding(..., &, ...), or remove the entry in rules.def/' <<<"$unknown"
  [ -z "$unknown" ]
}

@test "CHECKS.md has the lists that rules.def and the pitfalls give" {
  run -0 emulator/write-checks --look
  [ -z "$output" ]
}

@test "write-checks refuses an entry without a fix, or a finding without evidence" {
  mkdir -p "$BATS_TEST_TMPDIR/emulator/base"
  cp emulator/write-checks "$BATS_TEST_TMPDIR/emulator/"
  for wrong in 'RULE(A_RULE, "a-rule", ERROR, "Title", "Means.", "", "st", "Evidence.")' \
    'RULE(A_RULE, "a-rule", STRICT, "Title", "Means.", "Fix.", "st", "")' \
    'RULE(A_RULE, "a-rule", ERROR, "Title", "Means.", "Fix.", "st")' \
    'RULE(OTHER, "a-rule", ERROR, "Title", "Means.", "Fix.", "st", "Evidence.")'; do
    echo "$wrong" >"$BATS_TEST_TMPDIR/emulator/base/rules.def"
    run -1 "$BATS_TEST_TMPDIR/emulator/write-checks" --rules
    [[ $output == "write-checks: "*needs* ]]
  done
}

@test "a change in opcodes.def or rules.def recompiles few files" {
  for list in ptx/opcodes.def base/rules.def; do
    run -0 grep -rlF $list build/objects/emulator --include='*.d'
    [ "${#lines[@]}" -le 2 ]
  done
}

@test "opcodes.def names each instruction once" {
  twice=$(sed '/^ \*/d' emulator/ptx/opcodes.def | grep -oE '\b[A-Z]+\("[^"]*"' | cut -d'"' -f2 | sort | uniq -d)
  [ -z "$twice" ] || sed 's/.*/& stands twice in opcodes.def: if it runs now, remove what refuses it at the end/' <<<"$twice"
  [ -z "$twice" ]
}

@test "the developers' commands print their usage on stdout when asked for it" {
  local command option
  for command in emulator/rooms tests/long/sanitizers emulator/tests/long/check_costs emulator/tests/long/bench_emulator; do
    for option in -h --help; do
      echo "$command $option"
      run -0 --separate-stderr "$command" "$option"
      [[ $output == "usage: ${command##*/}"* ]]
    done
    run -2 "$command" --nothing-of-this-name
  done
}
