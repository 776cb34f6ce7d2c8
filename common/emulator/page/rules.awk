# rules.awk reading=reports REPORTS reading=checks CHECKS.md: for each rule that the recording's reports name, what CHECKS.md says about
# it, as a line {"rule": ..., "means": ..., "isa": ..., "grade": ..., "evidence": ...}.
BEGIN { FS = "|" }

function json(text) {
  gsub(/^ +| +$/, "", text)
  gsub(/[`*]/, "", text)
  gsub(/\\/, "\\\\", text)
  gsub(/"/, "\\\"", text)
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

/^## / { in_grades = $0 ~ /Grades/ }

/^\| `/ {
  count = split($2, names, ",")
  for (i = 1; i <= count; i++) {
    name = names[i]
    gsub(/[ `]/, "", name)
    if (!(name in reported)) continue
    if (in_grades) {
      grade[name] = $3
      evidence[name] = $4
    } else if (!(name in means)) {
      means[name] = $3
      isa[name] = $4
    }
  }
}

END {
  for (name in means)
    printf "{\"rule\": \"%s\", \"means\": %s, \"isa\": %s, \"grade\": %s, \"evidence\": %s}\n", name, json(means[name]),
      json(isa[name]), json(grade[name]), json(evidence[name])
}
