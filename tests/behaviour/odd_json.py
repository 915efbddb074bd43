"""JSON that an API server passes on as a tenant wrote it, and decoders of Python fail at."""

from typing import Final


def nested(levels: int, form: str = "object") -> bytes:
    """So many objects, or lists, in one another."""
    if form == "list":
        return b"[" * levels + b"]" * levels
    return b'{"f:a":' * levels + b"{}" + b"}" * levels


#: By name: a value that stands where any JSON may. None is more than an API server accepts.
ODD: Final = {
    "deep objects": nested(9_990),
    "deep lists": nested(9_990, "list"),
    "moderately deep": nested(1_200),
    "300 levels": nested(300),
    "wide": b"[" + b",".join([b"[{}]"] * 50_000) + b"]",
    "deep and wide": b"[" + b",".join([nested(200)] * 200) + b"]",
    "half a surrogate pair": rb'{"f:\ud800":"\udc00 \ud83d"}',
    "no UTF-8": b'{"f:\xff\xfe":"\xed\xa0\x80"}',
    "NUL": rb'{"f:\u0000":"\u0000"}',
    "byte order mark": b'{"f:\xef\xbb\xbf":"\xef\xbb\xbf"}',
    "beyond 64 bits": b"[-9223372036854775809,18446744073709551616]",
    "beyond a double": b"[1e400,-1e400,1" + b"0" * 400 + b"]",
    "thousands of digits": b"[1" + b"0" * 5_000 + b"]",
    "escaped quotes": rb'{"\\\"[{":"\\\\","\\":"[[[\""}',
}


def managed(fields: bytes) -> bytes:
    """managedFields of metadata."""
    return b'"managedFields":[{"manager":"m","fieldsType":"FieldsV1","fieldsV1":' + fields + b"}]"


def pod_bytes(name: str, fields: bytes, *, node: str = "", version: str = "5") -> bytes:
    """A pod with these managed fields."""
    on = f'"nodeName":"{node}",' if node else ""
    return (
        f'{{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{name}","namespace":"default",'
        f'"uid":"uid-{name}","resourceVersion":"{version}",'.encode()
        + managed(fields)
        + f'}},"spec":{{{on}"schedulerName":"asched","containers":[{{"name":"c","resources":'
        f'{{"requests":{{"cpu":"100m"}}}}}}]}}}}'.encode()
    )


def claim_bytes(name: str, parameters: bytes, *, version: str = "5") -> bytes:
    """A claim for a device, with these parameters for its driver."""
    return (
        f'{{"apiVersion":"resource.k8s.io/v1","kind":"ResourceClaim","metadata":{{"name":"{name}",'
        f'"namespace":"default","uid":"uid-{name}","resourceVersion":"{version}"}},"spec":{{"devices":'
        '{"requests":[{"name":"r","exactly":{"deviceClassName":"class"}}],'
        '"config":[{"opaque":{"driver":"driver.example.com","parameters":'.encode()
        + parameters
        + b"}}]}}}"
    )
