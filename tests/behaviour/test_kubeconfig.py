"""What a kubeconfig may say, asked by the command line."""

from pathlib import Path

import pytest

from asched.cli.main import main


def test_an_oidc_auth_provider_is_refused_and_the_exec_plugin_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kubeconfig"
    file.write_text(
        "current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n"
        "clusters: [{name: k, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {auth-provider: {name: oidc, config: {\n"
        "  idp-issuer-url: 'https://issuer.example', client-id: c, refresh-token: r}}}}]\n"
    )

    assert main(["snapshot", "--kubeconfig", str(file), "-"]) == 1
    why = "user 'u': auth-provider 'oidc' is not supported"
    cure = "use kubelogin (`kubectl oidc-login get-token`) as exec plugin"
    assert capsys.readouterr().err.splitlines() == [f"asched snapshot: {why}; {cure}"]
