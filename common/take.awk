# take.awk: writes one self-contained header to stdout. Called by common/take.
#
#   awk -f take.awk -v root=FOLDER -v header=FILE -v example=FILE -v only_90a=0|1
#
# header is the chapter's take/NAME.cuh or take/NAME.h: a comment, then #include lines of what the
# chapter offers. Each of the project's files that they reach is written once, after the files that
# it includes itself:
#   - a .cuh file goes into namespace tma;
#   - the names of a .h file NAME.h, which serves C too, begin with NAME_, and get tma_ before that;
#   - macros that outlive their file get TMA_ before their name.
# Each file keeps a guard with its checksum, so that two headers that share a file can be included
# together, and two versions of it cannot.
#
# Refused, with the chain of files that leads there: the harness (anything in common/ but
# tma_encode.h), stdio and printing, buffers that are static, macros with lower-case names, files
# without an include guard, and #include lines that depend on a condition.

function fail(message) {
  print "take: " message > "/dev/stderr"
  failed = 1
  exit 2
}

function relative(path) { return substr(path, length(root) + 2) }

function folder_of(path) { sub(/\/[^\/]*$/, "", path); return path }

function normal(path) {
  while (sub(/\/[^\/]+\/\.\.\//, "/", path)) {
  }
  return path
}

function exists(path,    line) {
  if ((getline line < path) < 0) return 0
  close(path)
  return 1
}

function resolve(name, from,    path) {
  path = normal(folder_of(from) "/" name)
  return exists(path) ? path : root "/common/" name
}

function checksum(path,    quoted, command, line) {
  quoted = path
  gsub(/'/, "'\\''", quoted)
  command = "cksum < '" quoted "'"
  command | getline line
  close(command)
  sub(/ .*/, "", line)
  return line
}

# The name as it is in the header that is taken along.
function taken_name(name,    stem) {
  if (name in macros) return "TMA_" name
  for (stem in stems) {
    if (index(name, stem "_") == 1) return "tma_" name
    if (index(name, toupper(stem) "_") == 1) return "TMA_" name
    if (name ~ ("^" toupper(substr(stem, 1, 1)) substr(stem, 2) "[A-Z]")) return "Tma" name
  }
  return name
}

function rename(text,    out, name) {
  out = ""
  while (match(text, /[A-Za-z_][A-Za-z0-9_]*/)) {
    name = substr(text, RSTART, RLENGTH)
    # "1u" and "0x10" begin with a digit: what follows it is no name.
    if (RSTART > 1 && substr(text, RSTART - 1, 1) ~ /[0-9]/) {
      out = out substr(text, 1, RSTART + RLENGTH - 1)
    } else {
      out = out substr(text, 1, RSTART - 1) taken_name(name)
    }
    text = substr(text, RSTART + RLENGTH)
  }
  return out text
}

function refuse_harness(path, chain) {
  if (relative(path) ~ /^common\// && relative(path) != "common/tma_encode.h")
    fail(chain " includes " relative(path) \
         ", which belongs to the lessons' harness, not to a header to take along")
}

# What must not be in a header that others include. Comments are not looked at.
function refuse_line(path, number, line,    where) {
  where = relative(path) ":" number ": "
  if (line ~ /^ *(\/\*|\/\/|\*)/) return
  if (line ~ /^#include <(stdio\.h|cstdio|iostream)>/)
    fail(where "a header to take along must not print, but this includes stdio")
  if (line ~ /(^|[^A-Za-z0-9_])(printf|fprintf|puts|exit|abort) *\(/)
    fail(where "a header to take along must neither print nor end the program: return an error")
  if (line ~ /^ *static [A-Za-z0-9_ ]*[A-Za-z0-9_]\[[^\]]*\];/)
    fail(where "a static buffer in a header: let the caller give the memory")
}

function note_macro(path, number, line,    name) {
  name = line
  sub(/^# *(define|undef) +/, "", name)
  sub(/[^A-Za-z0-9_].*/, "", name)
  if (line ~ /^# *undef/) {
    delete lasting[name]
    return
  }
  lasting[name] = number
}

# Reads a file, writes the files that it includes, then the file itself.
function take(path, chain, is_root,    line, number, text, count, depth, guard, includes, next_path,
              name, i, lines, stem) {
  if (path in seen) return
  seen[path] = 1
  if (!exists(path)) fail(chain " includes " relative(path) ", which does not exist")
  refuse_harness(path, chain)
  while ((getline line < path) > 0) lines[++number] = line
  close(path)
  guard = ""
  for (i = 1; i < number && guard == ""; i++) {
    if (lines[i] ~ /^#ifndef / && lines[i + 1] == "#define " substr(lines[i], 9)) {
      guard = substr(lines[i], 9)
      lines[i] = lines[i + 1] = "\001"
    }
  }
  if (guard == "" && !is_root) fail(relative(path) " has no include guard, so it cannot be taken along")
  if (guard != "") {
    while (lines[number] !~ /^#endif/) number--
    number--
  }
  depth = 0
  for (i = 1; i <= number; i++) {
    line = lines[i]
    refuse_line(path, i, line)
    if (line ~ /^# *if/) depth++
    if (line ~ /^# *endif/) depth--
    if (line !~ /^# *include/) continue
    if (depth > 0) fail(relative(path) ":" i ": an #include within #if cannot be moved")
    if (line ~ /"/) {
      name = line
      sub(/^[^"]*"/, "", name)
      sub(/".*/, "", name)
      next_path = resolve(name, path)
      take(next_path, relative(path), 0)
      lines[i] = "\001"
    }
  }
  if (is_root) return
  write_part(path, number, lines)
}

function write_part(path, number, lines,    i, name, mark, sum, blank, last) {
  for (name in lasting) delete lasting[name]
  for (i = 1; i <= number; i++)
    if (lines[i] ~ /^# *(define|undef) /) note_macro(path, i, lines[i])
  for (name in lasting) {
    if (name !~ /^[A-Z][A-Z0-9_]*$/)
      fail(relative(path) ":" lasting[name] ": the macro " name \
           " has a lower-case name: it would replace that word everywhere")
    if (name !~ /^TMA_/) macros[name] = 1
  }
  if (path ~ /\.h$/) {
    name = path
    sub(/.*\//, "", name)
    sub(/\.h$/, "", name)
    if (name !~ /^tma_/) stems[name] = 1
  }
  mark = toupper(relative(path))
  gsub(/[^A-Z0-9]/, "_", mark)
  mark = "TMA_TAKEN_" mark
  sum = checksum(path)
  printf "\n/* ---- %s ---- */\n#ifndef %s\n#define %s %s\n", relative(path), mark, mark, sum
  # The #include lines come first and stay outside the namespace.
  last = 0
  for (i = 1; i <= number; i++)
    if (lines[i] ~ /^# *include/ || lines[i] == "\001") last = i
  blank = 0
  for (i = 1; i <= number; i++) {
    if (i <= last && lines[i] !~ /^( \*|\/\*|\/\/|#|\001|$)/)
      fail(relative(path) ":" i ": code before the last #include: put all #include lines first")
    if (lines[i] != "\001" && !(lines[i] == "" && blank)) {
      print rename(lines[i])
      blank = lines[i] == ""
    }
    if (i == last && path ~ /\.cuh$/) {
      print (blank ? "" : "\n") "namespace tma {"
      blank = 0
    }
  }
  if (path ~ /\.cuh$/) print (blank ? "" : "\n") "}  // namespace tma"
  printf "%s#elif %s != %s\n", (blank ? "" : "\n"), mark, sum
  printf "#error \"two versions of %s meet here: take all headers again, ", relative(path)
  printf "from one version of the lessons\"\n#endif\n"
}

function write_top(path, example,    line, name, last) {
  name = path
  sub(/.*\//, "", name)
  while ((getline line < path) > 0) {
    if (line ~ /\*\/ *$/) {
      sub(/ *\*\/ *$/, "", line)
      print line
      break
    }
    print line
  }
  close(path)
  printf " *\n * Written by make take-%s, which can write it again. The licence is at the end.\n",
         substr(relative(path), 1, 2)
  last = example
  sub(/.*\//, "", last)
  printf " *\n * ---- %s ----\n", last
  while ((getline line < example) > 0) {
    if (line ~ "/[*]|[*]/")
      fail(relative(example) ": comments in an example begin with //, for it is put into a comment")
    print (line == "" ? " *" : " *   " line)
  }
  close(example)
  print " * ---- end ---- */"
}

# wgmma and setmaxnreg exist on sm_90a alone; the rest on sm_90 and everything after it. With -arch=sm_90a, the nvcc of CUDA
# 13.0 compiles for compute_90, too: there ptxas refuses wgmma, and warns of multicast.
function write_requirements(name, only_90a,    command) {
  command = "nvcc -gencode arch=compute_90a,code=sm_90a"
  print "#ifndef __CUDACC__"
  print "#error \"" name " is CUDA C++: include it in a .cu file and compile that with " command "\""
  print "#endif"
  if (only_90a) {
    print "#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)"
    print "#error \"" name " needs an H100 or H200 and their own instructions: compile with " command "\""
  } else {
    print "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900"
    print "#error \"" name " needs compute capability 9.0 or newer: compile with " command "\""
  }
  print "#endif"
}

function write_licence(path,    line) {
  print "\n/* SPDX-License-Identifier: MIT\n *"
  while ((getline line < path) > 0) print (line == "" ? " *" : " * " line)
  print " */"
  close(path)
}

BEGIN {
  write_top(header, example)
  name = header
  sub(/.*\//, "", name)
  if (name ~ /\.cuh$/) write_requirements(name, only_90a)
  take(header, relative(header), 1)
  write_licence(root "/LICENSE")
}

END {
  if (failed) exit 2
}
