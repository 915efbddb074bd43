"""Kubeconfig files."""

import json


def kubeconfig(path, server, user=None, cluster=None, **more):
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "k", "cluster": {"server": server, **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
        **more,
    }
    path.write_text(json.dumps(document))
    return str(path)
