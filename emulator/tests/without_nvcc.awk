# without_nvcc.awk: reads a file of tests and prints the first thing for which the test called `test` needs nvcc, if
# there is any: a program among `programs`, a chapter's, or a compilation. A test needs what its lines name, those of
# the file's functions that it calls, and the lines of setup, or outside of functions, that set what it uses.
function flush() { if (block != "") text[block] = body; block = "" }
{ if (match($0, /^[a-z_0-9]+\(\) *\{/)) { flush(); block = $0; sub(/\(.*/, "", block); body = "" }
  else if (/^@test /) { flush(); block = "@" $0; sub(/^@@test "/, "@", block); sub(/" *\{.*$/, "", block); body = "" } }
(block == "setup" || block == "" && !/^#/) && match($0, /[a-z_]+=/) { sets[substr($0, RSTART, RLENGTH - 1)] = $0 }
{ body = body "\n" $0 }
/^}/ || /\}( *#.*)?$/ && /^(@test|[a-z_0-9]+\(\))/ { flush() }
END {
  flush()
  needed = text["@" test]
  sub(/^\n@test "[^\n]*" *\{/, "", needed)
  for (round = 0; round < 4; round++) {
    for (name in text) if (name !~ /^@|^setup$/ && !(name in had) && needed ~ ("(^|[^a-z_0-9])" name "([^a-z_0-9=]|$)")) {
      had[name]; needed = needed text[name] }
    for (name in sets) if (!("$" name in had) && needed ~ ("\\$\\{?" name "([^a-z_0-9]|$)")) { had["$" name]; needed = needed "\n" sets[name] }
  }
  gsub(/\n *#[^\n]*/, "", needed)
  if (needed ~ /0[1-7]_[a-z]|write-checks/) { print "the chapters"; exit }
  if (needed ~ /(^|[ ("';])(make (-[A-Za-z]+ )*[a-z]|tests\/)/) { print "the whole repository"; exit }
  if (needed ~ /nvcc|\.cu[^a-z]|find-toolkit|tests\/joined|common\/(exercises|book)/) { print "nvcc"; exit }
  count = split(needed, words, /[^a-z_0-9]+/)
  split(programs, list, " ")
  for (i in list) is[list[i]]
  for (i = 1; i <= count; i++) if (words[i] in is && (!(words[i] in had) || index(needed, "/" words[i]))) { print words[i]; exit }
}
