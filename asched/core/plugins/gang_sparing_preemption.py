"""GangSparingPreemption: DefaultPreemption that takes no pod of a gang where it has a choice.

Makes room as DefaultPreemption does, in whose place it is enabled; a pod of a gang, whoever
          schedules it, counts like one that a disruption budget protects.
Evicts    whom DefaultPreemption would, but for gangs; kube-scheduler does not look at them.
Retry     as DefaultPreemption.
Cost      as DefaultPreemption, and a look at the marks of each pod that might go.
Source    none: kube-scheduler does not look at gangs of others.
"""

from asched import names
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.preemption.gangs import GangBudgets


class GangSparingPreemption(DefaultPreemption):
    name = names.GANG_SPARING_PREEMPTION
    budgets = GangBudgets
