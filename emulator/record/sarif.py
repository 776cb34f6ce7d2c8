"""sarif.py FINDINGS [SOURCE]: prints a list of findings (FINDINGS.md) as SARIF 2.1.0, for GitHub and editors.

SOURCE is the file that was compiled, where the program itself is gone."""

import json
import sys
import urllib.parse

LEVELS = {"strict": "warning"}  # all others: error


def place(path, line=None):
    # What is not below the current folder is of no use to a relative reader, but an editor opens it.
    uri = ("file://" if path.startswith("/") else "") + urllib.parse.quote(path)
    physical = {"artifactLocation": {"uri": uri}}
    if line:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def site_of(site):
    return place(site["file"], site["line"]) if site and "file" in site else None


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
    # GitHub refuses a result without a place: the program is one.
    location = site_of(finding["site"]) or place(source or finding["program"])
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
    other = site_of(finding["other"])
    if other:
        result["relatedLocations"] = [{"id": 1, **other, "message": {"text": "the other site"}}]
    kept = ("block", "rank", "threads", "memory", "memory_rank", "address", "bytes", "phase")
    result["properties"] = {key: finding[key] for key in kept if key in finding}
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
