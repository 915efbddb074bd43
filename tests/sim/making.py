"""Random objects of every kind that a filter reads. Names come from small sets, so that they
meet."""

import random
from typing import Any

Json = dict[str, Any]

ZONES = ("a", "b", "c")
APPS = ("web", "db", "job")
NAMESPACES = ("one", "two", "three")
TEAMS = ("red", "blue")
TAINTS = ("gpu", "spot")
CLAIMS = ("claim-0", "claim-1", "claim-2")
DEVICE_CLAIMS = ("devices-0", "devices-1")
DISKS = ("disk-0", "disk-1")
CSI = "csi.example.com"
GPU = "gpu.example.com"
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
OURS = ("default-scheduler", "second")


class Making:
    """Every method makes one object (or a part of one) from the next random numbers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.made = 0
        rules = (self.together, self.apart, self.spread, self.volumes, self.devices, self.plain)
        self.rules = dict.fromkeys(rules, 2)
        self.rules[rng.choice(rules)] = 15  # most pods of a world have the same kind of trouble

    def name(self, prefix: str) -> str:
        self.made += 1
        return f"{prefix}-{self.made}"

    def often(self, share: float) -> bool:
        return self.rng.random() < share

    # --- nodes and namespaces ---------------------------------------------------------------------

    def namespace(self, name: str) -> Json:
        return {"metadata": {"name": name, "labels": {"team": self.rng.choice(TEAMS)}}}

    def node(self, name: str = "") -> Json:
        rng = self.rng
        name = name or self.name("node")
        labels = {HOSTNAME: name, "disk": rng.choice(("ssd", "hdd"))}
        if self.often(0.9):
            labels[ZONE] = rng.choice(ZONES)
        spec: Json = {"unschedulable": True} if self.often(0.15) else {}
        if self.often(0.3):
            effect = rng.choice(("NoSchedule", "PreferNoSchedule"))
            spec["taints"] = [{"key": rng.choice(TAINTS), "effect": effect}]
        pods = str(rng.choice((2, 4, 10)))
        amounts = {"cpu": str(rng.choice((1, 2, 4))), "memory": "8Gi", "pods": pods}
        if self.often(0.3):
            amounts["example.com/dev"] = "2"
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"allocatable": amounts},
        }

    # --- pods -------------------------------------------------------------------------------------

    def pod(self) -> Json:
        rng = self.rng
        requests = {"cpu": rng.choice(("100m", "500m", "1500m"))}
        if self.often(0.1):
            requests["example.com/dev"] = "1"
        if self.often(0.05):
            requests["example.com/gpu"] = "1"
        container: Json = {"name": "c", "image": "i", "resources": {"requests": requests}}
        if self.often(0.15):
            container["ports"] = [{"containerPort": 1, "hostPort": rng.choice((80, 81))}]
        spec: Json = {"containers": [container], "schedulerName": self.scheduler()}
        spec["priority"] = rng.choice((0, 0, 0, 10))
        if self.often(0.7):
            spec["preemptionPolicy"] = "Never"
        if self.often(0.2):
            spec["nodeSelector"] = {"disk": rng.choice(("ssd", "hdd"))}
        if self.often(0.3):
            spec["tolerations"] = [self.toleration()]
        if self.often(0.08):
            spec["schedulingGates"] = [{"name": "example.com/wait"}]
        self.placement(spec)
        metadata = {
            "name": self.name("pod"),
            "namespace": rng.choice(NAMESPACES),
            "labels": {"app": rng.choice(APPS)},
        }
        return {"metadata": metadata, "spec": spec, "status": {}}

    def placement(self, spec: Json) -> None:
        """One or another rule that ties a pod to others, to volumes or to devices."""
        self.rng.choices(list(self.rules), weights=list(self.rules.values()))[0](spec)

    def plain(self, spec: Json) -> None:
        """None of them."""

    def together(self, spec: Json) -> None:
        spec["affinity"] = {"podAffinity": self.affinity()}

    def apart(self, spec: Json) -> None:
        spec["affinity"] = {"podAntiAffinity": self.affinity()}

    def affinity(self) -> Json:
        terms = [self.term() for _ in range(self.rng.choice((1, 1, 2)))]
        return {"requiredDuringSchedulingIgnoredDuringExecution": terms}

    def term(self) -> Json:
        rng = self.rng
        term: Json = {
            "topologyKey": rng.choice((HOSTNAME, ZONE)),
            "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
        }
        roll = rng.random()
        if roll < 0.2:
            term["namespaceSelector"] = {"matchLabels": {"team": rng.choice(TEAMS)}}
        elif roll < 0.3:
            only = {"key": "team", "operator": "NotIn", "values": [rng.choice(TEAMS)]}
            term["namespaceSelector"] = {"matchExpressions": [only]}
        elif roll < 0.45:
            term["namespaces"] = [rng.choice(NAMESPACES)]
        return term

    def spread(self, spec: Json) -> None:
        rng = self.rng
        constraints = [
            {
                "maxSkew": 1,
                "topologyKey": key,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": rng.choice(APPS)}},
                "nodeTaintsPolicy": rng.choice(("Honor", "Ignore")),
                "nodeAffinityPolicy": rng.choice(("Honor", "Ignore")),
                **({"minDomains": 2} if self.often(0.2) else {}),
            }
            for key in rng.choice(((ZONE,), (HOSTNAME,), (ZONE, HOSTNAME)))
        ]
        spec["topologySpreadConstraints"] = constraints

    def volumes(self, spec: Json) -> None:
        rng = self.rng
        volume: Json = {"name": "v"}
        roll = rng.random()
        if roll < 0.75:
            volume["persistentVolumeClaim"] = {"claimName": rng.choice(CLAIMS)}
        elif roll < 0.9:
            disk = {"pdName": rng.choice(DISKS), "readOnly": self.often(0.3)}
            volume["gcePersistentDisk"] = disk
        else:
            template = {"spec": {"accessModes": ["ReadWriteOnce"]}}
            volume["ephemeral"] = {"volumeClaimTemplate": template}
        spec["volumes"] = [volume]

    def devices(self, spec: Json) -> None:
        name = self.rng.choice(DEVICE_CLAIMS)
        spec["resourceClaims"] = [{"name": "d", "resourceClaimName": name}]

    def toleration(self) -> Json:
        return {"key": self.rng.choice(TAINTS), "operator": "Exists"}

    def scheduler(self) -> str:
        return self.rng.choices((*OURS, "somebody-else"), weights=(8, 2, 1))[0]

    # --- volumes ----------------------------------------------------------------------------------

    def claim(self, namespace: str, name: str, owner: Json | None = None) -> Json:
        rng = self.rng
        modes = [rng.choice(("ReadWriteOnce", "ReadWriteOncePod"))]
        metadata: Json = {"name": name, "namespace": namespace}
        if owner is not None:
            reference = {"apiVersion": "v1", "kind": "Pod", "controller": True}
            of = {"name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
            metadata["ownerReferences"] = [{**reference, **of}]
        return {
            "metadata": metadata,
            "spec": {
                "accessModes": modes,
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": rng.choice(("later", "later", "now")),
            },
            "status": {"phase": "Pending"},
        }

    def volume(self, zone: str | None = None, **claim_of: Any) -> Json:
        """A volume, tied to a zone or not; `claim_of` is the claim it is bound to."""
        name = self.name("pv")
        spec: Json = {
            "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
            "capacity": {"storage": self.rng.choice(("1Gi", "2Gi"))},
            "storageClassName": "later",
            "csi": {"driver": CSI, "volumeHandle": name},
        }
        if zone is not None:
            only = {"key": ZONE, "operator": "In", "values": [zone]}
            terms = {"nodeSelectorTerms": [{"matchExpressions": [only]}]}
            spec["nodeAffinity"] = {"required": terms}
        labels = {ZONE: zone} if zone is not None and self.often(0.5) else {}
        if claim_of:
            spec["claimRef"] = claim_of
        phase = "Bound" if claim_of else "Available"
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": spec,
            "status": {"phase": phase},
        }

    def storage_class(self, name: str) -> Json:
        mode = "WaitForFirstConsumer" if name == "later" else "Immediate"
        found: Json = {
            "metadata": {"name": name},
            "provisioner": CSI,
            "volumeBindingMode": mode,
        }
        if self.often(0.3):
            only = {"key": ZONE, "values": [self.rng.choice(ZONES)]}
            found["allowedTopologies"] = [{"matchLabelExpressions": [only]}]
        return found

    def csi_driver(self) -> Json:
        return {"metadata": {"name": CSI}, "spec": {"storageCapacity": self.often(0.7)}}

    def capacity(self, zone: str) -> Json:
        return {
            "metadata": {"name": f"capacity-{zone}", "namespace": "one"},
            "storageClassName": "later",
            "capacity": self.rng.choice(("500Mi", "2Gi")),
            "nodeTopology": {"matchLabels": {ZONE: zone}},
        }

    def csi_node(self, name: str) -> Json:
        driver: Json = {"name": CSI, "nodeID": name}
        if self.often(0.7):
            driver["allocatable"] = {"count": self.rng.choice((0, 1, 2))}
        drivers = [driver] if self.often(0.8) else []
        metadata: Json = {"name": name}
        if self.often(0.3):
            moved = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/gce-pd"}
            metadata["annotations"] = moved
        return {"metadata": metadata, "spec": {"drivers": drivers}}

    def attachment(self, volume: str, node: str) -> Json:
        source = {"persistentVolumeName": volume}
        return {
            "metadata": {"name": self.name("attachment")},
            "spec": {"attacher": CSI, "source": source, "nodeName": node},
            "status": {"attached": True},
        }

    # --- devices ----------------------------------------------------------------------------------

    def device_class(self) -> Json:
        spec: Json = {"extendedResourceName": "example.com/gpu"} if self.often(0.5) else {}
        return {"metadata": {"name": "gpu"}, "spec": spec}

    def resource_slice(self, node: str, generation: int) -> Json:
        pool = {"name": node, "generation": generation, "resourceSliceCount": 1}
        devices = [{"name": name} for name in self.rng.choice((("a",), ("a", "b")))]
        spec = {"driver": GPU, "pool": pool, "nodeName": node, "devices": devices}
        return {"metadata": {"name": f"slice-{node}-{self.rng.randrange(2)}"}, "spec": spec}

    def resource_claim(self, namespace: str, name: str) -> Json:
        exactly: Json = {"deviceClassName": "gpu", "allocationMode": "ExactCount"}
        exactly["count"] = self.rng.choice((1, 1, 2))
        if self.often(0.2):
            exactly = {"deviceClassName": "gpu", "allocationMode": "All"}
        return {
            "metadata": {"name": name, "namespace": namespace},
            "spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}},
            "status": {},
        }
