"""Imports change nothing for the rest of the process."""

import subprocess
import sys

CONTEXTS_DURING_THE_IMPORT = """
import threading
from asched.kube.certificates import client_context, self_signed

authority, _ = self_signed(["localhost"])
made, failures, is_over = [], [], threading.Event()

def make_contexts():
    while not is_over.is_set():
        try:
            made.append(client_context(authorities=authority).get_ca_certs()[0]["subject"])
        except BaseException as error:
            failures.append(repr(error))

thread = threading.Thread(target=make_contexts)
thread.start()
try:
    import asched.host.serving
finally:
    is_over.set()
    thread.join()
assert made, "no context was made meanwhile"
print(*set(failures), sep="\\n", end="")
"""


def test_a_thread_makes_tls_contexts_while_the_pages_are_imported() -> None:
    """A certificate authority may rotate, and the lease thread may connect, at any moment."""
    ran = subprocess.run(
        [sys.executable, "-c", CONTEXTS_DURING_THE_IMPORT],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
