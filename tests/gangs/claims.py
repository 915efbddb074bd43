"""Claims for small instances: volumes that are bound, volumes to be found or made, devices."""

import random
from typing import Any, Final

Json = dict[str, Any]
ZONE: Final = "topology.kubernetes.io/zone"
DRIVER: Final = "gpu.example.com"
#: Device classes and what they ask of a device (known to `conformance/twins/gang_claims.py`).
ANY_DEVICE: Final = f'device.driver == "{DRIVER}"'
LARGE: Final = f'device.attributes["{DRIVER}"].size >= 2'


def draw(rng: random.Random, nodes: list[Json], others: list[Json], gang: list[Json]) -> list[Json]:
    """Objects, which some of the pods use from then on. Pods of one `app` are alike."""
    found = _bound(rng, gang)
    if rng.random() < 0.3:
        found += _late(rng, nodes, gang)
    if rng.random() < 0.4:
        found += _devices(rng, nodes, others, gang)
    return found


def _bound(rng: random.Random, gang: list[Json]) -> list[Json]:
    """Claims for some pods, bound to volumes of one zone or of all; some may be used by one pod at
    a time. Pods may share them.
    """
    if rng.random() < 0.75:
        return []
    found: list[Json] = []
    for number in range(rng.randint(1, 2)):
        name, mode = f"data{number}", rng.choice(("ReadWriteMany", "ReadWriteOncePod"))
        volume = a_volume(
            f"pv-{name}", mode, "1Gi", rng.choice("xyz") if rng.random() < 0.7 else ""
        )
        volume["spec"]["claimRef"] = {"namespace": "default", "name": name, "uid": f"uid-{name}"}
        claim = a_claim(name, mode, "1Gi")
        claim["spec"]["volumeName"] = f"pv-{name}"
        claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
        claim["status"]["phase"] = volume["status"]["phase"] = "Bound"
        found += [volume, claim]
        for pod in rng.sample(gang, rng.randint(1, min(2, len(gang)))):
            _use(pod, name)
    return found


def _late(rng: random.Random, nodes: list[Json], gang: list[Json]) -> list[Json]:
    """Claims that wait for their first consumer, of a class that has volumes, or makes them too."""
    makes = rng.random() < 0.4
    storage: Json = {
        "kind": "StorageClass",
        "metadata": {"name": "late", "uid": "uid-late"},
        "provisioner": "csi.example.com" if makes else "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }
    if makes and rng.random() < 0.6:
        zones = {"key": ZONE, "values": [rng.choice("xyz")]}
        storage["allowedTopologies"] = [{"matchLabelExpressions": [zones]}]
    found = [storage]
    for number in range(rng.randint(0, 4)):
        host = rng.choice(nodes)["metadata"]["name"] if rng.random() < 0.3 else ""
        zone = "" if host or rng.random() < 0.2 else rng.choice("xxyz")
        mode = rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany"))
        size = rng.choice(("1Gi", "2Gi", "3Gi"))
        volume = a_volume(f"free{number}", mode, size, zone, host)
        volume["spec"]["storageClassName"] = "late"
        found.append(volume)
    for number in range(rng.randint(1, 3)):
        mode = rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany"))
        claim = a_claim(f"late{number}", mode, rng.choice(("1Gi", "2Gi")))
        claim["spec"]["storageClassName"] = "late"
        found.append(claim)
        for pod in rng.sample(gang, 2 if rng.random() < 0.25 and len(gang) > 1 else 1):
            _use(pod, f"late{number}")
    return found


def a_volume(name: str, mode: str, size: str, zone: str = "", host: str = "") -> Json:
    spec: Json = {"accessModes": [mode], "capacity": {"storage": size}}
    if zone or host:
        key = "kubernetes.io/hostname" if host else ZONE
        one = {"key": key, "operator": "In", "values": [zone or host]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [one]}]}}
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "1"},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def a_claim(name: str, mode: str, size: str) -> Json:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "resourceVersion": "1",
        },
        "spec": {"accessModes": [mode], "resources": {"requests": {"storage": size}}},
        "status": {"phase": "Pending"},
    }


def _use(pod: Json, claim: str) -> None:
    used = pod["spec"].setdefault("volumes", [])
    used.append({"name": claim, "persistentVolumeClaim": {"claimName": claim}})


# --- devices --------------------------------------------------------------------------------------


def _devices(
    rng: random.Random, nodes: list[Json], others: list[Json], gang: list[Json]
) -> list[Json]:
    """Devices on nodes, and some that several reach; claims from templates for all pods of a kind,
    and one that pods share, which somebody who runs may have.
    """
    found: list[Json] = [a_class("any", ANY_DEVICE), a_class("large", ANY_DEVICE, LARGE)]
    for node in nodes:
        name = node["metadata"]["name"]
        found += _slice(rng, name, {"nodeName": name}, rng.randint(0, 3))
    if rng.random() < 0.3:
        zones = {"key": ZONE, "operator": "In", "values": [rng.choice("xy")]}
        terms = {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}
        where: Json = {"allNodes": True} if rng.random() < 0.3 else {"nodeSelector": terms}
        found += _slice(rng, "shelf", where, rng.randint(1, 2))
    apps = sorted({pod["metadata"]["labels"]["app"] for pod in gang})
    for app in apps:
        if rng.random() < 0.6:
            name = f"wish-{app}"
            spec = {"spec": {"devices": _wish(rng)}}
            template = {"kind": "ResourceClaimTemplate", "spec": spec}
            found.append({**template, "metadata": {"name": name, "namespace": "default"}})
            for pod in gang:
                if pod["metadata"]["labels"]["app"] == app:
                    _ask(pod, {"name": "own", "resourceClaimTemplateName": name})
    if rng.random() < 0.4:
        found.append(_shared(rng, found, others))
        for pod in rng.sample(gang, min(rng.randint(1, 3), len(gang))):
            _ask(pod, {"name": "shared", "resourceClaimName": "shared"})
    return found


def _ask(pod: Json, reference: Json) -> None:
    pod["spec"].setdefault("resourceClaims", []).append(reference)


def a_class(name: str, *selectors: str) -> Json:
    chosen = [{"cel": {"expression": text}} for text in selectors]
    return {
        "kind": "DeviceClass",
        "metadata": {"name": name, "uid": f"uid-{name}"},
        "spec": {"selectors": chosen},
    }


def _slice(rng: random.Random, name: str, where: Json, count: int) -> list[Json]:
    if not count:
        return []
    devices = [
        {
            "name": f"d{number}",
            "attributes": {
                "size": {"int": rng.choice((1, 1, 2))},
                "link": {"string": rng.choice("ab")},
            },
        }
        for number in range(count)
    ]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, **where, "devices": devices}
    return [
        {"kind": "ResourceSlice", "metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec}
    ]


def _wish(rng: random.Random) -> Json:
    roll = rng.random()
    if roll < 0.5:
        return {"requests": [exactly("one", rng.choice(("any", "any", "large")), 1)]}
    if roll < 0.7:
        match = [{"matchAttribute": f"{DRIVER}/link"}] if rng.random() < 0.5 else []
        return {"requests": [exactly("two", "any", 2)], "constraints": match}
    if roll < 0.85:
        return {"requests": [exactly("one", "any", 1), exactly("large", "large", 1)]}
    either = [
        {"name": "large", "deviceClassName": "large", "allocationMode": "ExactCount", "count": 1},
        {"name": "two", "deviceClassName": "any", "allocationMode": "ExactCount", "count": 2},
    ]
    return {"requests": [{"name": "either", "firstAvailable": either}]}


def exactly(name: str, device_class: str, count: int) -> Json:
    asked = {"deviceClassName": device_class, "allocationMode": "ExactCount", "count": count}
    return {"name": name, "exactly": asked}


def _shared(rng: random.Random, objects: list[Json], others: list[Json]) -> Json:
    """A claim of its own name; somebody who runs where there is a device may have it already."""
    claim: Json = {
        "kind": "ResourceClaim",
        "metadata": {
            "name": "shared",
            "namespace": "default",
            "uid": "uid-shared",
            "resourceVersion": "1",
        },
        "spec": {"devices": {"requests": [exactly("one", "any", 1)]}},
    }
    slices = {o["metadata"]["name"]: o for o in objects if o["kind"] == "ResourceSlice"}
    users = [pod for pod in others if pod["spec"]["nodeName"] in slices]
    if users and rng.random() < 0.5:
        user = users[0]
        node = user["spec"]["nodeName"]
        _ask(user, {"name": "shared", "resourceClaimName": "shared"})
        device = {"request": "one", "driver": DRIVER, "pool": node, "device": "d0"}
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        consumer = {"resource": "pods", "name": user["metadata"]["name"]}
        claim["status"] = {
            "allocation": {"devices": {"results": [device]}, "nodeSelector": terms},
            "reservedFor": [{**consumer, "uid": user["metadata"]["uid"]}],
        }
    return claim
