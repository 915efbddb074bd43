"""Device requests whose alternatives differ in size."""

from tests.device_builders import DRIVER, a_device

A = f'device.attributes["{DRIVER}"]'
BIG, SMALL = f'{A}.size == "big"', f'{A}.size == "small"'


SIZES = [
    a_device("a", attributes={"size": "small", "numa": 0}),
    a_device("b", attributes={"size": "big", "numa": 0}),
    a_device("c", attributes={"size": "big", "numa": 1}),
]


SAME_NUMA = ({"matchAttribute": f"{DRIVER}/numa"},)
