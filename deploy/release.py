"""Build a release into dist/ from the ready environment: `make release`.

    asched-VERSION-*.whl, asched_lab-VERSION-*.whl    both distributions
    asched-VERSION.tar.gz, asched_lab-VERSION.tar.gz  their sources
    asched_cli-VERSION-*.whl                          the commands that need no NumPy
    asched-chart-VERSION.tgz                          the Helm chart
    kubectl-asched-VERSION-PLATFORM.tar.gz, krew.yaml
                                                      the kubectl plugin, if WHEELS has what it
                                                      depends on; --url is where it will be
    asched-VERSION.cdx.json                           the dependencies that are pinned, as CycloneDX
    asched-VERSION.image.tar                          the image, if BASE names its base
    asched-VERSION.provenance.json                    what it was built from, as SLSA's provenance
    SHA256SUMS

The version is that of pyproject.toml. Nothing is downloaded, and the same tree gives the same
bytes, but for the image. A build that fails leaves no folder.

    WHEELS=FOLDER     the plugin's dependencies, PLATFORM/*.whl; `make wheels` downloads them
    BASE=IMAGE        build the image, too, from a base in local storage; pip downloads the
                      dependencies that are pinned
    RUN_BASE=IMAGE    the base of the image itself, if BASE has what a build needs and an image must
                      not have, for example the authority of a proxy
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import posixpath
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
#: What the distributions are built from; the folder of each, and what is built there.
SOURCES = (
    *("asched", "config", "docs", "lab", "deploy/client"),
    *("CHANGELOG.md", "LICENSE", "README.md"),
)
PROJECTS = {".": ("wheel", "sdist"), "lab": ("wheel", "sdist"), "deploy/client": ("wheel",)}
LOCKS = ("build.lock", "client/requirements.lock", "extra-load.lock", "requirements.lock")
#: Files of wheels that no program reads.
UNUSED = (".c", ".h", ".pxd", ".pyi", ".pyx")
#: The target of a link of Markdown that is a path.
PATH = re.compile(r"(?<=\]\()(?![a-z]+:|#)[^)\s]+")


def main() -> int:
    parser = argparse.ArgumentParser(description="Build a release into a folder.")
    parser.add_argument("out", type=Path, metavar="FOLDER", help="a new or empty one")
    parser.add_argument("--url", default="RELEASE_URL", help="where the files will be published")
    args = parser.parse_args()
    out = args.out.resolve()
    if out.exists() and any(out.iterdir()):
        parser.error(f"{out} is not empty")
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=".release-") as made:
        folder = Path(made) / out.name
        folder.mkdir()
        build(folder, args.url)
        folder.rename(out)
    for path in sorted(out.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(out.parent)}")
    return 0


def build(out: Path, url: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version, source = project["version"], project["urls"]["Source"]
    bases = {name: os.environ[name] for name in ("BASE", "RUN_BASE") if os.environ.get(name)}
    engine = engine_with(bases["BASE"]) if "BASE" in bases else ""
    write_distributions(out, f"{source}/blob/v{version}")
    write_chart(out / f"asched-chart-{version}.tgz")
    if wheels := os.environ.get("WHEELS"):
        write_plugin(out, version, url, Path(wheels))
    else:
        print("kubectl plugin: not built; WHEELS names the folder of its dependencies")
    write_bill_of_materials(out / f"asched-{version}.cdx.json")
    if engine:
        write_image(out / f"asched-{version}.image.tar", version, engine, bases)
    else:
        print("image: not built; BASE names its base")
    statement = provenance(out, version, source, bases)
    text = json.dumps(statement, indent=1) + "\n"
    (out / f"asched-{version}.provenance.json").write_text(text, encoding="utf-8")
    sums = "".join(f"{digest(path)}  {path.name}\n" for path in sorted(out.iterdir()))
    (out / "SHA256SUMS").write_text(sums, encoding="utf-8")


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def write_distributions(out: Path, address: str) -> None:
    """From copies whose READMEs have addresses for links: a package index has no other files."""
    with tempfile.TemporaryDirectory() as made:
        copy = Path(made)
        for name in (*SOURCES, "pyproject.toml", ".gitignore"):
            if (ROOT / name).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / name, copy / name, ignore=ignored)
            else:
                shutil.copy2(ROOT / name, copy / name)
        for project, targets in PROJECTS.items():
            readme = copy / project / "README.md"
            text = readme.read_text(encoding="utf-8")
            readme.write_text(with_addresses(text, project, address), encoding="utf-8")
            words = [word for target in targets for word in ("-t", target)]
            command = (sys.executable, "-m", "hatchling", "build", *words)
            run(*command, "-d", str(out), cwd=copy / project)


def with_addresses(text: str, folder: str, address: str) -> str:
    def absolute(found: re.Match[str]) -> str:
        return f"{address}/{posixpath.normpath(posixpath.join(folder, found[0]))}"

    return PATH.sub(absolute, text)


def write_chart(target: Path) -> None:
    """As `helm package` does; symbolic links are followed."""
    chart = DEPLOY / "chart"
    files = [
        Path(folder) / name
        for folder, _, names in os.walk(chart, followlinks=True)
        for name in names
    ]
    write_archive(target, ((f"asched/{path.relative_to(chart)}", path) for path in files))


def write_plugin(out: Path, version: str, url: str, wheels: Path) -> None:
    """An archive for each platform of krew.yaml."""
    manifest = (DEPLOY / "krew.yaml").read_text(encoding="utf-8")
    manifest = manifest[manifest.index("apiVersion") :].replace("RELEASE_URL", url)
    (wheel,), (client,) = out.glob("asched-*.whl"), out.glob("asched_cli-*.whl")
    sources = (wheel, DEPLOY / "kubectl-asched", DEPLOY / "requirements.lock", ROOT / "LICENSE")
    for platform in re.findall(r"sha256: SHA256-(\S+)", manifest):
        archive = out / f"kubectl-asched-{version}-{platform}.tar.gz"
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            unpack(client, folder / "client")
            for one in sorted((wheels / platform).glob("*.whl")):
                unpack(one, folder / re.sub(r".*-cp3(\d+)-.*", r"python3.\1", one.name))
            files = [path for path in folder.rglob("*") if path.is_file()]
            packed = ((path.relative_to(folder).as_posix(), path) for path in files)
            write_archive(archive, (*packed, *((path.name, path) for path in sources)))
        manifest = manifest.replace(f"SHA256-{platform}", digest(archive))
    (out / "krew.yaml").write_text(manifest, encoding="utf-8")


def unpack(wheel: Path, folder: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(UNUSED):
                archive.extract(name, folder)


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


def write_bill_of_materials(target: Path) -> None:
    """CycloneDX of asched and what is pinned for it, with hashes."""
    command = (sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible")
    words = (f"--pyproject={ROOT / 'pyproject.toml'}", "--mc-type=application")
    run(*command, *words, f"--output-file={target}", str(DEPLOY / "requirements.lock"))


def engine_with(base: str) -> str:
    """The program that has an image in local storage; the process ends if there is none."""
    for engine in ("buildah", "docker"):
        if output(engine, "images", "--quiet", base):
            return engine
    sys.exit(f"release: neither buildah nor docker has the base image {base}")


def write_image(target: Path, version: str, engine: str, bases: dict[str, str]) -> None:
    """An archive of the image."""
    given = {**bases, "VERSION": version, "REVISION": output("git", "rev-parse", "HEAD")}
    words = [f"--build-arg={name}={value}" for name, value in given.items() if value]
    if engine == "buildah":
        tag = f"localhost/asched:{version}"
        # Docker's format keeps the health check.
        run("buildah", "bud", "--format=docker", f"--tag={tag}", *words, str(ROOT))
        run("buildah", "push", tag, f"docker-archive:{target}:asched:{version}")
    else:
        run("docker", "build", f"--tag=asched:{version}", *words, str(ROOT))
        run("docker", "save", f"--output={target}", f"asched:{version}")


def provenance(out: Path, version: str, source: str, bases: dict[str, str]) -> dict[str, object]:
    """SLSA provenance 1 of the files in `out`, unsigned."""
    commit = output("git", "rev-parse", "HEAD")
    tree = {"uri": f"git+{source}", **({"digest": {"gitCommit": commit}} if commit else {})}
    locks = [
        {"uri": f"deploy/{name}", "digest": {"sha256": digest(DEPLOY / name)}} for name in LOCKS
    ]
    parameters = {"version": version, **bases}
    if output("git", "status", "--porcelain"):
        parameters["modified"] = "the tree differs from the commit"
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.name, "digest": {"sha256": digest(path)}}
            for path in sorted(out.iterdir())
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{source}/blob/v{version}/deploy/release.py",
                "externalParameters": parameters,
                "resolvedDependencies": [tree, *locks],
            },
            "runDetails": {"builder": {"id": f"{source}/blob/v{version}/Makefile"}},
        },
    }


def run(*command: str, cwd: Path = ROOT) -> None:
    """Run a command; show its output only if it fails."""
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)  # noqa: S603
    if ran.returncode:
        sys.exit(f"{ran.stdout}{ran.stderr}release: {' '.join(command)} failed")


def output(*command: str) -> str:
    """What a command prints; empty where it fails or is absent."""
    if shutil.which(command[0]) is None:
        return ""
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603
    return ran.stdout.strip() if ran.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
