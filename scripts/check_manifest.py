"""Compares each document of a Kubernetes manifest with its schema: `check_manifest.py MANIFEST CRD`.

Kubernetes' own come with `kubernetes-validate`, strictly: a member that is not known is an error. A custom resource is
compared with its CRD, in which every object is closed first, since the API server drops what it does not know.
"""

import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.34"


def closed(schema: Any) -> Any:
    """The same schema, without members that it does not name."""
    if isinstance(schema, list):
        return [closed(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: closed(value) for name, value in schema.items()}
    if "properties" in found and not found.get("x-kubernetes-preserve-unknown-fields"):
        found.setdefault("additionalProperties", False)
    if found.pop("x-kubernetes-int-or-string", False):
        found = {"type": ["integer", "string"]}
    return found


def main() -> None:
    manifest, crd = map(Path, sys.argv[1:])
    custom = yaml.safe_load(crd.read_text())["spec"]
    versions = {one["name"]: one["schema"]["openAPIV3Schema"] for one in custom["versions"]}
    for document in yaml.safe_load_all(manifest.read_text()):
        group, _, version = document["apiVersion"].rpartition("/")
        what = f"{document['kind']} {document['metadata']['name']}"
        if (group, document["kind"]) == (custom["group"], custom["names"]["kind"]):
            schema = closed(versions[version])
            schema["properties"]["metadata"] = {"type": "object"}
            jsonschema.validate(document, schema, cls=jsonschema.Draft202012Validator)
        else:
            kubernetes_validate.validate(document, VERSION, strict=True)
        print(f"{manifest}: {what}: ok")


main()
