from asched import names
from asched.core.config import args
from asched.core.config.defaults import (
    configuration,
    default_configuration,
)
from asched.core.config.gates import DEFAULT_GATES
from asched.core.config.v1 import LeaderElection, SchedulerConfiguration
from asched.core.model.timestamp import NS_PER_SECOND

#: Plugins in no default profile.
NOT_BY_DEFAULT = (
    names.BACKFILL,
    names.COSCHEDULING,
    names.CHECK_AND_HOLD,
    names.GROUP_SCALE_UP,
    names.REBALANCE,
    names.CAPACITY_SCHEDULING,
)


def one(name: str, given: object, **gates: bool) -> object:
    document = {"profiles": [{"pluginConfig": [{"name": name, "args": given}]}]}
    built = configuration(document, {**DEFAULT_GATES, **gates})
    return built.profiles[0].plugin_config[name]


def test_an_empty_document_is_the_default_configuration() -> None:
    assert configuration({}) == default_configuration()
    assert configuration({}).leader_election == LeaderElection()


def test_the_records_own_defaults_are_what_an_empty_document_gives() -> None:
    built = default_configuration()
    assert built == SchedulerConfiguration(profiles=built.profiles)
    for name, kind in args.ARGS_TYPES.items():
        assert one(name, {}) == kind()
        listed = built.profiles[0].plugin_config.get(name)
        assert listed == (None if name in NOT_BY_DEFAULT else kind())


def test_zero_means_not_given_for_rates_and_durations() -> None:
    built = configuration(
        {
            "clientConnection": {"qps": 0, "burst": 0, "contentType": ""},
            "leaderElection": {"leaseDuration": 0, "resourceName": ""},
            "extenders": [{"httpTimeout": 0}, None],
        }
    )
    assert built.client_connection.qps == -1
    assert built.client_connection.burst == 100
    assert built.leader_election.lease_duration_ns == 15 * NS_PER_SECOND
    assert built.leader_election.resource_name == "kube-scheduler"
    assert [extender.http_timeout_s for extender in built.extenders] == [5, 5]


def test_an_explicit_zero_is_kept_elsewhere() -> None:
    built = configuration(
        {"parallelism": 0, "podMaxBackoffSeconds": 0, "profiles": [{"percentageOfNodesToScore": 0}]}
    )
    assert (built.parallelism, built.pod_max_backoff_s) == (0, 0)
    assert built.profiles[0].percentage_of_nodes_to_score == 0


def test_only_a_single_profile_gets_a_name() -> None:
    assert configuration({"profiles": [None]}).profiles[0].scheduler_name == "default-scheduler"
    assert configuration({"profiles": [{"schedulerName": ""}]}).profiles[0].scheduler_name == ""
    assert [p.scheduler_name for p in configuration({"profiles": [{}, None]}).profiles] == ["", ""]


def test_default_args_come_after_the_users_sorted_by_name() -> None:
    built = configuration({"profiles": [{"pluginConfig": [{"name": "VolumeBinding"}, {}]}]})
    listed = [entry.name for entry in built.profiles[0].plugin_configs]
    assert listed[:2] == ["VolumeBinding", ""]
    assert listed[2:] == sorted(set(args.ARGS_TYPES) - {"VolumeBinding", *NOT_BY_DEFAULT})


def test_a_strategy_is_completed_but_its_type_is_not() -> None:
    fit = one(names.NODE_RESOURCES_FIT, {"scoringStrategy": {"resources": [{"name": "x"}]}})
    assert fit == args.NodeResourcesFitArgs(
        scoring_strategy=args.ScoringStrategy(type="", resources=(args.ResourceSpec("x", 1),))
    )
    assert one(names.NODE_RESOURCES_FIT, {"scoringStrategy": None}) == args.NodeResourcesFitArgs()


def test_gates_decide_about_timeouts_and_shape() -> None:
    off = one(names.DYNAMIC_RESOURCES, {}, DRASchedulerFilterTimeout=False)
    assert off == args.DynamicResourcesArgs(filter_timeout_ns=None)
    for gate in ("DRADeviceBindingConditions", "DRAResourceClaimDeviceStatus"):
        off = one(names.DYNAMIC_RESOURCES, {}, **{gate: False})
        assert off == args.DynamicResourcesArgs(binding_timeout_ns=None)
    shaped = one(names.VOLUME_BINDING, {}, StorageCapacityScoring=True)
    points = (args.UtilizationShapePoint(0, 10), args.UtilizationShapePoint(100, 0))
    assert shaped == args.VolumeBindingArgs(shape=points)
    assert one(names.VOLUME_BINDING, {"shape": []}) == args.VolumeBindingArgs(shape=())
