"""Build a release into dist/, offline, from the ready environment: `make release`.

    asched-VERSION-*.whl, asched_lab-VERSION-*.whl    both distributions
    asched-VERSION.tgz                                the Helm chart
    kubectl-asched-VERSION.tar.gz, krew.yaml          the kubectl plugin; --url is where it will be
    asched-VERSION.cdx.json                           the dependencies that are pinned, as CycloneDX
    asched-VERSION.image.tar                          the image, where its base is in local storage
    SHA256SUMS

The version is that of pyproject.toml. The same tree gives the same bytes, but for the image.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
BASE = re.compile(r"^ARG BASE=(\S+)$", re.MULTILINE)


def main() -> int:
    parser = argparse.ArgumentParser(description="Build a release into a folder.")
    parser.add_argument("out", type=Path, metavar="FOLDER", help="a new or empty one")
    parser.add_argument("--url", default="RELEASE_URL", help="where the files will be published")
    args = parser.parse_args()
    out = args.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if any(out.iterdir()):
        parser.error(f"{out} is not empty")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project["version"]
    for folder in (ROOT, ROOT / "lab"):
        run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out), cwd=folder)
    write_chart(out / f"asched-{version}.tgz")
    plugin = out / f"kubectl-asched-{version}.tar.gz"
    write_plugin(plugin, next(out.glob("asched-*.whl")))
    manifest = (DEPLOY / "krew.yaml").read_text(encoding="utf-8")
    manifest = manifest.replace("RELEASE_URL", args.url).replace("SHA256", digest(plugin))
    (out / "krew.yaml").write_text(manifest[manifest.index("apiVersion") :], encoding="utf-8")
    bom = json.dumps(bill_of_materials(project), indent=1)
    (out / f"asched-{version}.cdx.json").write_text(bom + "\n", encoding="utf-8")
    write_image(out / f"asched-{version}.image.tar", version)
    made = sorted(path for path in out.iterdir() if path.is_file())
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in made)
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")
    for path in made:
        print(f"{path.stat().st_size:>12,}  {path.relative_to(out.parent)}")
    return 0


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_chart(target: Path) -> None:
    """As `helm package` does; symbolic links are followed."""
    chart = DEPLOY / "chart"
    files = [
        Path(folder) / name
        for folder, _, names in os.walk(chart, followlinks=True)
        for name in names
    ]
    write_archive(target, ((f"asched/{path.relative_to(chart)}", path) for path in files))


def write_plugin(target: Path, wheel: Path) -> None:
    sources = (wheel, DEPLOY / "kubectl-asched", DEPLOY / "requirements.lock", ROOT / "LICENSE")
    write_archive(target, ((path.name, path) for path in sources))


def write_archive(target: Path, files: Iterable[tuple[str, Path]]) -> None:
    """A gzipped tar without times, owners and the order of a folder."""
    with (
        target.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        for name, path in sorted(files):
            content = path.read_bytes()
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(content))


def bill_of_materials(project: dict[str, object]) -> dict[str, object]:
    """CycloneDX 1.6 of asched and what is pinned for it; a pin for some Pythons has its marker."""
    text = (DEPLOY / "requirements.lock").read_text(encoding="utf-8")
    components = []
    for name, version, marker in re.findall(
        r"^([\w.-]+)==([\w.]+)(?: ; (.+))? \\$", text, re.MULTILINE
    ):
        url = f"pkg:pypi/{name}@{version}"
        component = {"type": "library", "bom-ref": url, "name": name, "version": version}
        component["purl"] = url
        if marker:
            component["properties"] = [{"name": "python:marker", "value": marker}]
        components.append(component)
    own = f"pkg:pypi/asched@{project['version']}"
    subject = {
        "type": "application",
        "bom-ref": own,
        "name": "asched",
        "version": project["version"],
        "description": project["description"],
        "licenses": [{"license": {"id": project["license"]}}],
        "purl": own,
    }
    direct = {re.split(r"[<>=;\s]", text)[0].lower() for text in project["dependencies"]}
    edges = [component["bom-ref"] for component in components if component["name"] in direct]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": subject},
        "components": components,
        "dependencies": [{"ref": own, "dependsOn": edges}],
    }


def write_image(target: Path, version: str) -> None:
    """An archive of the image; a line says why there is none. BASE names another base."""
    (base,) = BASE.findall((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    base = os.environ.get("BASE", base)
    words = [f"--build-arg=BASE={base}", f"--build-arg=VERSION={version}"]
    if revision := output("git", "-C", str(ROOT), "rev-parse", "HEAD"):
        words.append(f"--build-arg=REVISION={revision}")
    if not (shutil.which("buildah") or shutil.which("docker")):
        print("image: skipped, neither buildah nor docker is installed")
    elif output("buildah", "images", "--quiet", base):
        tag = f"localhost/asched:{version}"
        # Docker's format keeps the health check.
        run("buildah", "bud", "--format=docker", f"--tag={tag}", *words, str(ROOT))
        run("buildah", "push", tag, f"docker-archive:{target}:asched:{version}")
    elif output("docker", "images", "--quiet", base):
        run("docker", "build", f"--tag=asched:{version}", *words, str(ROOT))
        run("docker", "save", f"--output={target}", f"asched:{version}")
    else:
        print(f"image: skipped, neither buildah nor docker has the base image {base}")


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; show its output only if it fails."""
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        sys.exit(f"{ran.stdout}{ran.stderr}release: {' '.join(command)} failed")


def output(*command: str) -> str:
    """What a command prints; empty where it fails or is absent."""
    if shutil.which(command[0]) is None:
        return ""
    ran = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return ran.stdout.strip() if ran.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
