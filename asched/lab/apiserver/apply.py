"""Server-side apply."""

from asched.lab.apiserver.call import Call, Reply
from asched.lab.apiserver.context import Context
from asched.lab.apiserver.resources import Resource
from asched.lab.apiserver.statuses import unsupported_patch


def handle_apply(
    ctx: Context, call: Call, res: Resource, namespace: str, name: str, sub: str
) -> Reply:
    del ctx, call, res, namespace, name, sub
    raise unsupported_patch()
