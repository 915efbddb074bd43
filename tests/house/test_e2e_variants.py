"""What can run everywhere, runs everywhere: a test of `tests/e2e` on a real control plane has a
variant on the embedded API server, or a reason why not.
"""

import ast
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "e2e"
#: File and test -> the test of that file that plays the same on the embedded server.
TWINS: Final = {
    (
        "test_held_places",
        "test_the_same_with_500_requests_on_a_real_api_server",
    ): "test_places_are_promised_once",
    (
        "test_neighbours",
        "test_no_pod_of_ours_is_left_refused_beside_kube_scheduler",
    ): "test_no_pod_of_ours_is_left_refused_beside_a_random_binder",
    (
        "test_operators",
        "test_the_same_against_a_real_api_server",
    ): "test_every_operators_objects_go_on_or_are_told_why_not",
    (
        "test_quotas",
        "test_the_same_against_a_real_api_server",
    ): "test_a_quota_is_kept_and_its_use_is_told",
    (
        "test_whatif",
        "test_a_real_server_sees_what_was_foretold",
    ): "test_the_embedded_server_sees_what_was_foretold",
}
#: Those that show what others make of our manifests.
REASONS: Final = {
    (
        "test_newcomer",
        "test_from_the_clone_to_an_empty_cluster",
    ): "rollouts, rollbacks and what is left afterwards are those of kube-controller-manager",
}


def marked_real() -> set[tuple[str, str]]:
    """Tests with the mark `real` on themselves; a parameter has it for one of its values."""
    found = set()
    for path in FOLDER.glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert "pytestmark = pytest.mark.real" not in ast.unparse(tree), path.name
        for node in tree.body:
            if isinstance(node, ast.AsyncFunctionDef | ast.FunctionDef) and any(
                ast.unparse(decorator) == "pytest.mark.real" for decorator in node.decorator_list
            ):
                found.add((path.stem, node.name))
    return found


def test_a_test_on_a_real_control_plane_alone_is_listed() -> None:
    assert marked_real() == TWINS.keys() | REASONS.keys()


def test_each_twin_exists_and_runs_everywhere() -> None:
    for (file, _), twin in TWINS.items():
        assert f"def {twin}(" in (FOLDER / f"{file}.py").read_text(encoding="utf-8")
        assert (file, twin) not in marked_real()
