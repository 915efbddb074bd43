"""GangSparingPreemption: DefaultPreemption that avoids evicting pods of gangs where it can.

Makes room as DefaultPreemption does, in whose place it is enabled; a pod of a gang, of whichever
          scheduler, counts like a pod that a disruption budget protects.
Evicts    the victims of DefaultPreemption, pods of gangs last; kube-scheduler ignores gangs.
Retry     as DefaultPreemption.
Cost      as DefaultPreemption, and one check of the labels of each potential victim.
Source    none: kube-scheduler does not consider gangs of other schedulers.
"""

from asched import names
from asched.core.plugins.default_preemption import DefaultPreemption
from asched.core.preemption.gang_budgets import GangBudgets


class GangSparingPreemption(DefaultPreemption):
    name = names.GANG_SPARING_PREEMPTION
    budgets = GangBudgets
