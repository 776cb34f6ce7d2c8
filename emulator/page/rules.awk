# rules.awk reading=reports REPORTS reading=rules rules.def: for each rule that the recording's reports name, what rules.def says about
# it, as a line {"rule": ..., "means": ..., "isa": ..., "grade": ..., "evidence": ...}.

# The n-th string of the entry, as JSON has it.
function string(n) {
  text = fields[n]
  gsub(/`/, "", text)
  gsub(/</, "\\u003c", text)
  return "\"" text "\""
}

# Only numbers stand between the kind of a report and its rule.
reading == "reports" {
  if (match($0, /^\["f(inding|ault)",[-0-9, ]+"[a-z0-9-]+"/)) {
    name = substr($0, RSTART, RLENGTH - 1)
    sub(/.*"/, "", name)
    reported[name] = 1
  }
  next
}

/^RULE\(/ { entry = "" }
{ entry = entry $0 }

# The whole entry: its strings, in order. Escapes are those of JSON.
/\)$/ && entry ~ /^RULE\(/ {
  count = 0
  split(entry, parts, ",")
  grade = parts[3]
  gsub(/ /, "", grade)
  gsub(/" +"/, "", entry) # one string in two lines
  while (match(entry, /"([^"\\]|\\.)*"/)) {
    fields[++count] = substr(entry, RSTART + 1, RLENGTH - 2)
    entry = substr(entry, RSTART + RLENGTH)
  }
  if (fields[1] in reported) {
    grade = grade == "ERROR" ? "error" : grade == "STRICT" || grade == "LAYOUT" ? "strict" : ""
    printf "{\"rule\": %s, \"means\": \"%s. %s, \"isa\": %s, \"grade\": \"%s\", \"evidence\": %s}\n", string(1),
      fields[2], substr(string(3), 2), string(5), grade, string(6)
  }
}
