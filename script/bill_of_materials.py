#!/usr/bin/env python3
"""Writes a bill of materials (CycloneDX 1.6, JSON): what the packages of a build were made from.

usage: bill_of_materials.py BUILD_FOLDER VERSION FILE

What the build says of itself is the source: the headers that each object file was compiled with, and the archives that were linked in, each by the Debian
package that it belongs to; and what npm has put into the page. The C library and the kernel's headers are interfaces of what is shipped, not parts of it.
Its time is SOURCE_DATE_EPOCH, and its serial number follows from its content.
"""
import datetime
import json
import os
import re
import subprocess
import sys
import uuid

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.contact import OrganizationalEntity
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

# What is installed, by its target in the build.
SHIPPED = {"heapwright": ComponentType.APPLICATION, "lib/libheapwright.so": ComponentType.LIBRARY,
           "lib/libheapwright-hardened.so": ComponentType.LIBRARY, "lib/libheapwright.a": ComponentType.LIBRARY,
           "lib/libheapwright-probe.so": ComponentType.LIBRARY, "heapwright-replayer": ComponentType.APPLICATION,
           "malloc_conformance": ComponentType.APPLICATION, "malloc_limit": ComponentType.APPLICATION, "stress": ComponentType.APPLICATION}
PAGE = "heapwright"  # what has the page in it
INTERFACES = {"libc6-dev", "linux-libc-dev"}


def output_of(*command, check=True):
    return subprocess.run(command, check=check, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True).stdout


def headers_by_object(build):
    """{object file: [absolute path]}"""
    found, current = {}, None
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        head = re.match(r"(\S+): #deps .*\((VALID|STALE)\)$", line)
        if head:
            current = found.setdefault(head[1], []) if head[2] == "VALID" else []
        elif line.startswith("    /") and current is not None:
            current.append(os.path.normpath(line.strip()))
    return found


def files_behind(build, target, headers):
    """What is outside of the project and goes into the target."""
    inputs = output_of("ninja", "-C", build, "-t", "inputs", target).splitlines()
    archives = [i for i in inputs if i.startswith("/usr/") and i.endswith(".a")]
    return {h for i in inputs for h in headers.get(i, ()) if h.startswith("/usr/")} | set(archives)


def packages_of(files):
    """{file: Debian package}"""
    owners = {}
    files = sorted(files)
    for at in range(0, len(files), 200):
        for line in output_of("dpkg", "-S", *files[at:at + 200], check=False).splitlines():
            package, _, path = line.partition(": ")
            owners[path] = package.split(",")[0].split(":")[0]
    unknown = [f for f in files if f not in owners]
    if unknown:
        raise SystemExit("bill_of_materials: no Debian package has %s: what it belongs to cannot be named" % unknown[0])
    return owners


def debian_component(package):
    query = output_of("dpkg-query", "-W", "-f", "${Version}\t${Architecture}\t${source:Package}\t${source:Version}\n", package).splitlines()[0]
    version, architecture, source, source_version = query.split("\t")
    purl = PackageURL("deb", "debian", package, version, {"arch": architecture, "upstream": f"{source}@{source_version}"})
    return Component(name=package, version=version, type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl), supplier=OrganizationalEntity(name="Debian"))


def page_components(build):
    """What npm has put into the page; tools that make it are not in it."""
    with open(os.path.join(build, "tools/live/web/package-lock.json"), encoding="utf-8") as file:
        packages = json.load(file)["packages"]
    for path, what in packages.items():
        if path and not what.get("dev"):
            name = path.rpartition("node_modules/")[2]
            purl = PackageURL("npm", None, name, what["version"])
            yield Component(name=name, version=what["version"], type=ComponentType.LIBRARY, purl=purl, bom_ref=str(purl),
                            licenses=[DisjunctiveLicense(id=what["license"])] if "license" in what else ())


def main(build, version, path):
    headers = headers_by_object(build)
    files = {target: files_behind(build, target, headers) for target in SHIPPED}
    empty = [target for target, found in files.items() if not found]
    if empty:
        raise SystemExit("bill_of_materials: %s has no %s: build it first" % (build, empty[0]))
    owners = packages_of(set().union(*files.values()))
    components = {p: debian_component(p) for p in sorted(set(owners.values()) - INTERFACES)}
    page = list(page_components(build))

    def own(name, kind):
        return Component(name=name, version=version, type=kind, bom_ref=f"{name}@{version}", licenses=[DisjunctiveLicense(id="MIT")])

    # A name of its own, beside the command's.
    whole = Component(name="heapwright", version=version, type=ComponentType.APPLICATION, bom_ref=f"heapwright-packages@{version}",
                      licenses=[DisjunctiveLicense(id="MIT")])
    shipped = {target: own(os.path.basename(target), kind) for target, kind in SHIPPED.items()}
    bom = Bom(components=[*shipped.values(), *components.values(), *page])
    bom.metadata.component = whole
    bom.metadata.timestamp = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.timezone.utc)
    bom.register_dependency(whole, shipped.values())
    for target, component in shipped.items():
        behind = [components[p] for p in sorted({owners[f] for f in files[target]} - INTERFACES)]
        bom.register_dependency(component, behind + (page if target == PAGE else []))
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, " ".join(sorted(str(c.bom_ref) for c in bom.components)) + str(bom.metadata.timestamp))

    text = make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2) + "\n"
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong:
        raise SystemExit("bill_of_materials: what would be written is no CycloneDX: %s" % wrong)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    main(*sys.argv[1:])
