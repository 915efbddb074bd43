"""etcd, kube-apiserver, kube-controller-manager, the fakelet and a scheduler, until SIGTERM.

    python -m tests.e2e.upstream.cluster DIR kube|asched|none [--nodes 4] [--gates A=true,...]

Prints the kubeconfig; logs are in DIR. The scheduler runs as system:kube-scheduler, with the rights
of kube-scheduler. Programs are taken from PATH, asched from ASCHED.
"""

import argparse
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
GATES = (
    "GenericWorkload=true,GangScheduling=true,WorkloadAwarePreemption=true,"
    "TopologyAwareWorkloadScheduling=true"
)


def port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def quiet(*a):
    subprocess.run(a, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("dir")
    ap.add_argument("scheduler", choices=["kube", "asched", "none"])
    ap.add_argument("--nodes", default="4")
    ap.add_argument("--zones", default="2")
    ap.add_argument("--gates", default=GATES)
    ap.add_argument(
        "--server-gates", default="", help="further gates of API server and controllers"
    )
    ap.add_argument("--scheduler-args", default="")
    a = ap.parse_args()
    d = Path(a.dir).resolve()
    shutil.rmtree(d, ignore_errors=True)
    d.mkdir(parents=True)
    gates = ",".join(
        x for x in (a.gates, "TranslateStreamCloseWebsocketRequests=false", a.server_gates) if x
    )
    ep, pp, sp, kp, hp, fp = (port() for _ in range(6))
    quiet(
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-keyout",
        f"{d}/ca.key",
        "-out",
        f"{d}/ca.crt",
        "-days",
        "30",
        "-subj",
        "/CN=test-ca",
    )

    def cert(name, subj, ext):
        (d / "ext").write_text(ext)
        quiet(
            "openssl",
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-keyout",
            f"{d}/{name}.key",
            "-out",
            f"{d}/{name}.csr",
            "-subj",
            subj,
        )
        quiet(
            "openssl",
            "x509",
            "-req",
            "-in",
            f"{d}/{name}.csr",
            "-CA",
            f"{d}/ca.crt",
            "-CAkey",
            f"{d}/ca.key",
            "-CAcreateserial",
            "-out",
            f"{d}/{name}.crt",
            "-days",
            "30",
            "-extfile",
            f"{d}/ext",
        )

    cert(
        "api",
        "/CN=kube-apiserver",
        "subjectAltName=IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\n",
    )
    quiet("openssl", "genrsa", "-out", f"{d}/sa.key", "2048")
    (d / "tokens.csv").write_text(
        'admin-token,admin,1,"system:masters"\nsched-token,system:kube-scheduler,2,\n'
    )
    procs = []

    def start(name, *cmd):
        command = [str(c) for c in cmd]
        with (d / f"{name}.log").open("ab") as log:
            p = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True, cwd=ROOT)
        procs.append((name, p))
        (d / f"{name}.pid").write_text(str(p.pid))
        return p

    def stop(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    try:
        start(
            "etcd",
            "etcd",
            "--data-dir",
            d / "etcd",
            "--listen-client-urls",
            f"http://127.0.0.1:{ep}",
            "--advertise-client-urls",
            f"http://127.0.0.1:{ep}",
            "--listen-peer-urls",
            f"http://127.0.0.1:{pp}",
            "--initial-advertise-peer-urls",
            f"http://127.0.0.1:{pp}",
            "--initial-cluster",
            f"default=http://127.0.0.1:{pp}",
            "--snapshot-count",
            "100000",
        )
        server = f"https://127.0.0.1:{sp}"
        api = start(
            "apiserver",
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{ep}",
            f"--secure-port={sp}",
            "--bind-address=127.0.0.1",
            f"--tls-cert-file={d}/api.crt",
            f"--tls-private-key-file={d}/api.key",
            f"--client-ca-file={d}/ca.crt",
            f"--token-auth-file={d}/tokens.csv",
            "--authorization-mode=RBAC",
            f"--service-account-key-file={d}/sa.key",
            f"--service-account-signing-key-file={d}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--cert-dir={d}",
            "--service-cluster-ip-range=10.0.0.0/16",
            "--allow-privileged=true",
            "--kubelet-preferred-address-types=InternalIP",
            "--event-ttl=1h",
            f"--feature-gates={gates}",
            "--runtime-config=api/all=true",
        )
        ctx = ssl.create_default_context(cafile=f"{d}/ca.crt")
        for _ in range(300):
            if api.poll() is not None:
                sys.exit((d / "apiserver.log").read_text()[-2000:])
            try:
                r = urllib.request.Request(
                    server + "/readyz", headers={"Authorization": "Bearer admin-token"}
                )
                if urllib.request.urlopen(r, context=ctx, timeout=2).status == 200:
                    break
            except OSError:
                time.sleep(0.3)
        else:
            sys.exit("apiserver is not ready")
        for name, tok in (("kubeconfig", "admin-token"), ("sched.kubeconfig", "sched-token")):
            (d / name).write_text(
                json.dumps(
                    {
                        "apiVersion": "v1",
                        "kind": "Config",
                        "current-context": "c",
                        "clusters": [
                            {
                                "name": "k",
                                "cluster": {
                                    "server": server,
                                    "certificate-authority": f"{d}/ca.crt",
                                },
                            }
                        ],
                        "users": [{"name": "u", "user": {"token": tok}}],
                        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
                    }
                )
            )
        start(
            "kcm",
            "kube-controller-manager",
            f"--kubeconfig={d}/kubeconfig",
            "--use-service-account-credentials=false",
            f"--service-account-private-key-file={d}/sa.key",
            f"--root-ca-file={d}/ca.crt",
            f"--cluster-signing-cert-file={d}/ca.crt",
            f"--cluster-signing-key-file={d}/ca.key",
            "--controllers=*",
            "--leader-elect=false",
            "--bind-address=127.0.0.1",
            f"--secure-port={kp}",
            f"--cert-dir={d}/kcm",
            "--kube-api-qps=200",
            "--kube-api-burst=400",
            f"--feature-gates={gates}",
        )
        start(
            "fakelet",
            sys.executable,
            "-m",
            "tests.e2e.upstream.fakelet",
            "--kubeconfig",
            d / "kubeconfig",
            "--nodes",
            a.nodes,
            "--zones",
            a.zones,
            "--violations",
            d / "violations.jsonl",
            "--port",
            fp,
            "--tls-cert",
            d / "api.crt",
            "--tls-key",
            d / "api.key",
        )
        extra = a.scheduler_args.split()
        if a.scheduler == "kube":
            start(
                "scheduler",
                "kube-scheduler",
                f"--kubeconfig={d}/sched.kubeconfig",
                f"--authentication-kubeconfig={d}/sched.kubeconfig",
                f"--authorization-kubeconfig={d}/sched.kubeconfig",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={hp}",
                f"--cert-dir={d}/sched",
                f"--feature-gates={a.gates}",
                "--v=2",
                *extra,
            )
        elif a.scheduler == "asched":
            start(
                "scheduler",
                os.environ.get("ASCHED", "asched"),
                "run",
                f"--kubeconfig={d}/sched.kubeconfig",
                "--scheduler-name=default-scheduler",
                "--leader-elect=false",
                "--bind-address=127.0.0.1",
                f"--secure-port={hp}",
                f"--feature-gates={a.gates}",
                "--v=2",
                *extra,
            )
        print(json.dumps({"server": server, "kubeconfig": f"{d}/kubeconfig"}), flush=True)
        dead = set()
        while True:
            for name, p in procs:
                if p.poll() is not None and name not in dead:
                    dead.add(name)
                    print("ended:", name, p.returncode, flush=True)
            time.sleep(1)
    except KeyboardInterrupt:
        pass
    finally:
        for _, p in reversed(procs):
            if p.poll() is None:
                p.terminate()
        for _, p in reversed(procs):
            try:
                p.wait(10)
            except subprocess.TimeoutExpired:
                p.kill()


if __name__ == "__main__":
    main()
