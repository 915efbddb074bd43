"""Ways to install asched: the commands of docs/install.md, upgrade.md and uninstall.md."""

import os
import shutil
import subprocess
from abc import ABC, abstractmethod
from pathlib import Path

from realcluster.settings import REPOSITORY, Settings

DEPLOY = REPOSITORY / "deploy"
CONFIG = REPOSITORY / "config"
KUBE_SCHEDULER = Path(__file__).with_name("kube-scheduler.yaml")
#: Profile, and the rights that it needs: names of components and of the chart's options.
PROFILES = {
    "default": (CONFIG / "default.yaml", ()),
    "high-load": (CONFIG / "high-load.yaml", ()),
    "batch": (CONFIG / "batch.yaml", ("coscheduling", "status-controllers")),
}


class Administrator:
    """Commands of an administrator: kubectl, helm, asched."""

    def __init__(self, settings: Settings) -> None:
        self._environment = {
            **os.environ,
            "KUBECONFIG": str(settings.kubeconfig),
            "PATH": f"{settings.assets}:{os.environ['PATH']}",
        }

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words,
            env=self._environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )

    def do(self, *words: str, stdin: str | None = None) -> str:
        """What the command prints; it has to succeed."""
        ran = self.run(*words, stdin=stdin)
        if ran.returncode:
            raise RuntimeError(f"{' '.join(words)}\n{ran.stdout}{ran.stderr}")
        return ran.stdout.strip()


class Installation(ABC):
    """Two replicas of a scheduler, their Deployment, their Lease and the name that pods give."""

    namespace: str
    deployment: str
    lease: str
    scheduler: str

    def __init__(self, settings: Settings, administrator: Administrator) -> None:
        self._settings = settings
        self._administrator = administrator
        self._repository, _, self._tag = settings.image.rpartition(":")

    @abstractmethod
    def install(self) -> None: ...

    @abstractmethod
    def uninstall(self) -> None: ...

    def wait_for_rollout(self) -> None:
        status = ("rollout", "status", f"deployment/{self.deployment}", "--timeout=180s")
        self._administrator.do("kubectl", "-n", self.namespace, *status)


class Asched(Installation):
    """An installation of asched, which can be changed."""

    lease = scheduler = "asched"

    @abstractmethod
    def change(self, profile: str, tag: str = "") -> None:
        """Give the replicas another profile, and another image where there is a tag."""

    @abstractmethod
    def undo(self) -> None:
        """Give them back what they had before the last change."""


class Chart(Asched):
    """`helm install y deploy/chart --namespace x`."""

    namespace = "x"
    deployment = "y-asched"

    def install(self) -> None:
        self._administrator.do("kubectl", "create", "namespace", self.namespace)
        level = "pod-security.kubernetes.io/enforce=restricted"
        self._administrator.do("kubectl", "label", "namespace", self.namespace, level)
        self._helm("install", str(DEPLOY / "chart"), f"--set=image.repository={self._repository}",
                   f"--set=image.tag={self._tag}")  # fmt: skip

    def change(self, profile: str, tag: str = "") -> None:
        file, rights = PROFILES[profile]
        options = [f"--set-file=config={file}"]
        for name in rights:
            first, *others = name.split("-")
            option = first + "".join(word.title() for word in others)
            options.append(f"--set=options.{option}=true")
        if tag:
            options.append(f"--set=image.tag={tag}")
        self._helm("upgrade", str(DEPLOY / "chart"), "--reset-then-reuse-values", *options)

    def undo(self) -> None:
        self._helm("rollback")

    def uninstall(self) -> None:
        self._helm("uninstall")
        self._administrator.do("kubectl", "delete", "namespace", self.namespace)

    def _helm(self, verb: str, *words: str) -> None:
        self._administrator.do("helm", verb, "y", *words, f"--namespace={self.namespace}")


class Overlay(Asched):
    """`kubectl apply -k` of an overlay beside deploy/overlays/ha."""

    namespace = "asched-system"
    deployment = "asched"

    def __init__(self, settings: Settings, administrator: Administrator) -> None:
        super().__init__(settings, administrator)
        self._folder = settings.folder / "my-cluster"

    def install(self) -> None:
        self._apply("default", self._tag)

    def change(self, profile: str, tag: str = "") -> None:
        self._apply(profile, tag or self._tag)

    def undo(self) -> None:
        words = ("rollout", "undo", f"deployment/{self.deployment}")
        self._administrator.do("kubectl", "-n", self.namespace, *words)

    def uninstall(self) -> None:
        self._administrator.do("kubectl", "delete", "-k", str(self._folder))

    def _apply(self, profile: str, tag: str) -> None:
        file, rights = PROFILES[profile]
        self._folder.mkdir(exist_ok=True)
        shutil.copy(file, self._folder / "config.yaml")
        components = ", ".join(self._path(DEPLOY / "components" / name) for name in rights)
        text = f"""\
resources: [{self._path(DEPLOY / "overlays/ha")}]
components: [{components}]
images: [{{name: asched, newName: {self._repository}, newTag: {tag}}}]
configMapGenerator:
  - {{name: asched-config, namespace: asched-system, behavior: replace, files: [config.yaml]}}
"""
        (self._folder / "kustomization.yaml").write_text(text, encoding="utf-8")
        self._administrator.do("kubectl", "apply", "-k", str(self._folder))

    def _path(self, target: Path) -> str:
        """Kustomize takes relative paths only."""
        return os.path.relpath(target, self._folder)


class KubeScheduler(Installation):
    """kube-scheduler in the same place, to compare with."""

    namespace = "second-scheduler"
    deployment = lease = scheduler = "second"

    def install(self) -> None:
        text = KUBE_SCHEDULER.read_text(encoding="utf-8")
        image = self._settings.kube_scheduler_image
        text = text.replace("KUBE_SCHEDULER_IMAGE", image)
        self._administrator.do("kubectl", "apply", "-f", "-", stdin=text)

    def uninstall(self) -> None:
        self._administrator.do("kubectl", "delete", "-f", str(KUBE_SCHEDULER))


INSTALLATIONS: dict[str, type[Installation]] = {
    "chart": Chart,
    "overlay": Overlay,
    "kube-scheduler": KubeScheduler,
}
