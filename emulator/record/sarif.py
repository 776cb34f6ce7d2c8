"""sarif.py FINDINGS [SOURCE]: prints a list of findings (FINDINGS.md) as SARIF 2.1.0, for GitHub and editors.

SOURCE is the file that was compiled, where the program itself is gone."""

import json
import sys
import urllib.parse

LEVELS = {"strict": "warning"}  # all others: error
# What SARIF has a place of its own for, in a rule or a result. All other fields are properties.
PLACED = ("rule", "grade", "heading", "means", "fix", "documented_in", "kernel", "site", "other", "message", "times")


def place(path, line=None):
    # What is not below the current folder is of no use to a relative reader, but an editor opens it.
    uri = ("file://" if path.startswith("/") else "") + urllib.parse.quote(path)
    physical = {"artifactLocation": {"uri": uri}}
    if line:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def site_of(site, program):
    # GitHub refuses a result without a place: the program is one.
    others = dict(site or {})
    location = place(others.pop("file", program), others.pop("line", None))
    if others:
        location["properties"] = others
    return location


def rule_of(finding):
    plain = {key: finding[key].replace("`", "") for key in ("heading", "means", "fix")}
    return {
        "id": finding["rule"],
        "shortDescription": {"text": plain["heading"] or finding["rule"]},
        "fullDescription": {"text": plain["means"] or finding["rule"]},
        "help": {
            "text": f"{plain['means']} {plain['fix']} ({finding['documented_in']})",
            "markdown": f"{finding['means']}\n\n{finding['fix']}\n\nDocumented in: {finding['documented_in']}",
        },
        "defaultConfiguration": {"level": LEVELS.get(finding["grade"], "error")},
        "properties": {"tags": [finding["grade"]]},
    }


def result_of(finding, index, source):
    program = source or finding["program"]
    location = site_of(finding["site"], program)
    if "kernel" in finding:
        location["logicalLocations"] = [{"name": finding["kernel"], "kind": "function"}]
    result = {
        "ruleId": finding["rule"],
        "ruleIndex": index,
        "level": LEVELS.get(finding["grade"], "error"),
        "message": {"text": finding["message"]},
        "locations": [location],
        "occurrenceCount": finding["times"],
    }
    if finding["other"]:
        other = site_of(finding["other"], program)
        result["relatedLocations"] = [{"id": 1, **other, "message": {"text": "the other site"}}]
    result["properties"] = {name: value for name, value in finding.items() if name not in PLACED}
    return result


def main(path, source=""):
    with open(path, encoding="utf-8") as file:
        findings = json.load(file)["findings"]
    rules = {finding["rule"]: rule_of(finding) for finding in findings}
    index = {rule: number for number, rule in enumerate(rules)}
    driver = {"name": "emulate", "version": "1.0", "rules": list(rules.values())}
    run = {
        "tool": {"driver": driver},
        "results": [result_of(finding, index[finding["rule"]], source) for finding in findings],
    }
    print(json.dumps({"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}))


main(*sys.argv[1:])
