"""`asched extender`: serve asched's plugins to a stock kube-scheduler by the extender protocol.

Exit status: 0 a clean stop; 1 the cluster cannot be reached or the port cannot be opened; 2 wrong
flags or configuration.
"""

import argparse
from typing import Any, Final

from asched import names
from asched.cli.arguments import add_plugin_flags, fail, port, whole
from asched.core.config.v1 import API_VERSION, KIND
from asched.host.advising import AdvisingPlan, run_advising
from asched.host.assemble import BUILD_ERRORS
from asched.host.configuration.file import (
    ConfigError,
    LoadedConfig,
    UnreadableFileError,
    load_config,
)
from asched.host.loops import CannotStartError
from asched.host.user_plugins.catalogue import Catalogue, PluginLoadError, discover
from asched.kube.errors import ConnectError
from asched.kube.session import ConnectionOptions
from asched.serve.options import CannotServeError, ServingOptions
from asched.serve.telemetry import log

#: Next to the ports of kube-scheduler (10259) and the cloud controller manager (10258).
PORT: Final = 10261
ABOUT: Final = """\
Serves filter, prioritize, preempt and bind with asched's plugins and your own. In the
KubeSchedulerConfiguration of kube-scheduler:

  extenders:
  - urlPrefix: http://127.0.0.1:10261
    filterVerb: filter
    prioritizeVerb: prioritize
    weight: 1
    nodeCacheCapable: true
"""

VERBOSITY_MAX: Final = (1 << 31) - 1


def add_parser(subparsers: Any) -> None:
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "extender",
        help="serve asched's plugins to a stock kube-scheduler as an HTTP extender",
        description=ABOUT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--config", metavar="FILE", help="profiles and plugins; extenders are ignored")
    add_plugin_flags(parser)
    add("--kubeconfig", default="", metavar="FILE", help="kubeconfig of the cluster")
    add(
        "--master",
        default="",
        metavar="URL",
        help="address of the API server; overrides the kubeconfig",
    )
    add(
        "--bind-address",
        default="127.0.0.1",
        metavar="IP",
        help="address to listen on (default %(default)s)",
    )
    add(
        "--port",
        type=port,
        default=PORT,
        help="port to listen on (default %(default)s; 0: any free port)",
    )
    add("--tls", action="store_true", help="serve HTTPS, self-signed without files")
    add("--tls-cert-file", default="", metavar="FILE", help="HTTPS certificate")
    add("--tls-private-key-file", default="", metavar="FILE", help="its private key")
    add("--client-ca-file", default="", metavar="FILE", help="CA of client certificates")
    add(
        "--standalone",
        action="store_true",
        help="do not watch the cluster: use only the nodes of each request"
        " (nodeCacheCapable: false)",
    )
    add("-v", type=whole(0, VERBOSITY_MAX), default=0, metavar="LEVEL", help="log verbosity")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if bool(args.tls_cert_file) is not bool(args.tls_private_key_file):
        message = "--tls-cert-file and --tls-private-key-file must be given together"
        return fail("extender", message, 2)
    is_tls = bool(args.tls or args.tls_cert_file)
    if args.client_ca_file and not is_tls:
        message = "--client-ca-file needs HTTPS: add --tls, or --tls-cert-file and its key"
        return fail("extender", message, 2)
    log.setup(as_json=False, verbosity=args.v, modules={})
    log.speak_for_python()
    try:
        plugins = discover(args.plugin, args.plugin_dir)
        loaded = _load(args.config, plugins)
    except (PluginLoadError, UnreadableFileError, ConfigError) as error:
        return fail("extender", error, 2)
    kubeconfig = args.kubeconfig or loaded.configuration.client_connection.kubeconfig
    plan = AdvisingPlan(
        configuration=loaded.configuration,
        serving=ServingOptions(
            bind_address=args.bind_address,
            secure_port=args.port,
            tls_cert_file=args.tls_cert_file,
            tls_private_key_file=args.tls_private_key_file,
        ),
        connection=ConnectionOptions(kubeconfig=kubeconfig, master=args.master),
        plugins=plugins,
        follows=not args.standalone,
        tls=is_tls,
        client_ca_file=args.client_ca_file,
    )
    try:
        return run_advising(plan)
    except BUILD_ERRORS as error:
        return fail("extender", error, 2)
    except (ConnectError, CannotStartError, CannotServeError) as error:
        return fail("extender", error, 1)


def _load(path: str | None, plugins: Catalogue) -> LoadedConfig:
    """The file, or the defaults with the plugins of flags, for pods of any scheduler name."""
    if path:
        return load_config(path, known=plugins.known)
    enabled = "".join(f"{{name: {name!r}}}, " for name in plugins.given)
    profile = f"{{schedulerName: {names.DEFAULT_SCHEDULER_NAME}"
    if enabled:
        profile += f", plugins: {{multiPoint: {{enabled: [{enabled}]}}}}"
    text = f"apiVersion: {API_VERSION}\nkind: {KIND}\nprofiles: [{profile}}}]\n"
    return load_config(text=text, known=plugins.known)
