"""Types of VMs with cores, memory and price, and how their use is billed.

Built in are the cluster of the paper (Table 4), that of the released code, and two of the same 96 cores at published
prices of Amazon EC2, where memory costs extra; lists of one's own are csv files with the columns
``type, cores, memory_gb, quantity, price_per_hour`` and, if wanted, ``currency``.

Source: Islam, Karunasekera, Buyya, "Performance and Cost-Efficient Spark Job Scheduling Based on Deep Reinforcement
Learning in Cloud Computing Environments", IEEE TPDS 33(7), 2022, Table 4.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from decima.core.checks import is_name, is_number, is_whole
from decima.core.errors import ConfigError, WorkloadError
from decima.core.grammar import hint
from decima.systems.cloud import tabular

if TYPE_CHECKING:
    import pandas

MIB_PER_GB = 1024
MOST_VMS = 10_000
_COLUMNS = ("type", "cores", "memory_gb", "quantity", "price_per_hour")


@dataclass(frozen=True)
class VmType:
    """Equal VMs under one name.

    Raises:
        ConfigError: A number is out of range.
    """

    name: str  # such as ``m1.large``
    cores: int  # of each VM
    memory_gb: float  # of each VM; counted in MiB, parts of which are lost
    quantity: int  # how many there are
    price_per_hour: float  # of each VM, in the currency of the list

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise ConfigError(f"a VM type's name is {self.name!r}; expected a text")
        for key in ("cores", "quantity"):
            value = getattr(self, key)
            if not is_whole(value) or not 1 <= value <= 10**6:
                raise ConfigError(
                    f"VM type {self.name}: {key} is {value!r:.60}; expected a whole number from 1 to 1,000,000"
                )
        for key, least in (("memory_gb", 1 / MIB_PER_GB), ("price_per_hour", 1e-6)):
            value = getattr(self, key)
            if not is_number(value) or not least <= value <= 1e6:
                raise ConfigError(f"VM type {self.name}: {key} is {value!r}; expected a number from {least:g} to 1e+06")

    @property
    def memory_mib(self) -> int:
        """Memory in whole MiB."""
        return math.floor(self.memory_gb * MIB_PER_GB)


@dataclass(frozen=True)
class Cluster:
    """VMs that executors may be placed on, numbered from 0 type by type.

    Raises:
        ConfigError: There are no VMs or too many, or a type is listed twice.
    """

    types: tuple[VmType, ...]
    currency: str = "USD"
    label: str = "own VMs"  # in titles

    def __post_init__(self) -> None:
        object.__setattr__(self, "types", tuple(self.types))
        names = [vm_type.name for vm_type in self.types]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"VM type {name} is listed twice; expected one line with its quantity")
        if not 1 <= len(self) <= MOST_VMS:
            raise ConfigError(f"the list has {len(self)} VMs; expected 1 to {MOST_VMS:,}")
        if not is_name(self.currency) or not is_name(self.label):
            raise ConfigError(f"currency and label must be texts, got {self.currency!r} and {self.label!r}")

    def __len__(self) -> int:
        return sum(vm_type.quantity for vm_type in self.types)

    @cached_property
    def vms(self) -> tuple[VmType, ...]:
        """The type of every VM."""
        return tuple(vm_type for vm_type in self.types for _ in range(vm_type.quantity))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every VM: its type and a number from 1, such as ``m1.large-2``."""
        return tuple(f"{vm_type.name}-{number + 1}" for vm_type in self.types for number in range(vm_type.quantity))

    @property
    def cores(self) -> int:
        """Cores of all VMs."""
        return sum(vm_type.cores * vm_type.quantity for vm_type in self.types)

    @property
    def memory_gb(self) -> float:
        """Memory of all VMs in GB."""
        return sum(vm_type.memory_gb * vm_type.quantity for vm_type in self.types)

    @property
    def price_per_hour(self) -> float:
        """Price of all VMs together."""
        return sum(vm_type.price_per_hour * vm_type.quantity for vm_type in self.types)

    def describe(self) -> pandas.DataFrame:
        """Table of the types: type, cores, memory_gb, quantity, price_per_hour, price_per_core_hour, currency."""
        import pandas

        table = pandas.DataFrame([asdict(vm_type) for vm_type in self.types]).rename(columns={"name": "type"})
        per_core = table["price_per_hour"] / table["cores"]
        return table.assign(price_per_core_hour=per_core, currency=self.currency)

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready values."""
        return asdict(self)


TABLE_4 = Cluster(
    (
        VmType("m1.large", 4, 16.0, 4, 0.24),
        VmType("m1.xlarge", 8, 32.0, 4, 0.48),
        VmType("m2.xlarge", 12, 48.0, 4, 0.72),
    ),
    label="Table 4",
)
# The published code has prices of 1, 2 and 3 per second; here are those of Table 4, to which they are proportional.
RELEASED = Cluster(
    (VmType("small", 4, 12.0, 3, 0.24), VmType("medium", 8, 24.0, 3, 0.48), VmType("large", 12, 36.0, 3, 0.72)),
    label="released cluster",
)
# Cores, memory in GB and $ per hour of Amazon EC2, on demand, Linux, us-east-1, fifth generation
# (https://aws.amazon.com/ec2/pricing/on-demand/): 4 cores with 8, 16 or 32 GB cost 0.17, 0.192 or 0.252 $.
EC2 = {
    "c5.xlarge": (4, 8.0, 0.17),
    "c5.2xlarge": (8, 16.0, 0.34),
    "m5.2xlarge": (8, 32.0, 0.384),
    "r5.2xlarge": (8, 64.0, 0.504),
}


def _of_ec2(label: str, quantities: dict[str, int]) -> Cluster:
    kinds = []
    for name, quantity in quantities.items():
        cores, memory_gb, price = EC2[name]
        kinds.append(VmType(name, cores, memory_gb, quantity, price))
    return Cluster(tuple(kinds), label=label)


# Two lists in which a core does not cost the same everywhere.
FAMILIES = _of_ec2("EC2 c5, m5, r5", {"c5.2xlarge": 4, "m5.2xlarge": 4, "r5.2xlarge": 4})
COMPUTE = _of_ec2("EC2 c5, m5", {"c5.xlarge": 4, "c5.2xlarge": 4, "m5.2xlarge": 6})
CLUSTERS = {"table4": TABLE_4, "released": RELEASED, "families": FAMILIES, "compute": COMPUTE}


def load_cluster(path: str | Path) -> Cluster:
    """Read a list of VMs from a csv file.

    Raises:
        OSError: The file cannot be read.
        WorkloadError: A row is not as expected; the message has the row and the reason.
    """
    types: list[VmType] = []
    currency = None
    for where, row in tabular.read_rows(path, _COLUMNS, ("currency",)):
        stated = row.get("currency") or "USD"
        if currency is not None and stated != currency:
            raise WorkloadError(f"{where}: currency is {stated!r} after {currency!r}; expected one for all VMs")
        currency = stated
        if any(vm_type.name == row["type"] for vm_type in types):
            raise WorkloadError(f"{where}: type {row['type']!r} is listed twice; expected one line with its quantity")
        if not row["type"]:
            raise WorkloadError(f"{where}: type is empty; expected a name")
        numbers = (
            tabular.whole(where, "cores", row["cores"]),
            tabular.number(where, "memory_gb", row["memory_gb"], above=True),
            tabular.whole(where, "quantity", row["quantity"]),
            tabular.number(where, "price_per_hour", row["price_per_hour"], above=True),
        )
        try:
            types.append(VmType(row["type"], *numbers))
        except ConfigError as error:
            raise WorkloadError(f"{where}: {error}") from error
    return Cluster(tuple(types), currency, Path(path).stem)


def make_cluster(text: str | Path | Cluster) -> Cluster:
    """Return a built-in list of VMs (:data:`CLUSTERS`), or read a csv file.

    Raises:
        ConfigError: There is no such list.
        WorkloadError: The file is not as expected.
    """
    if isinstance(text, Cluster):
        return text
    if isinstance(text, Path) or str(text).endswith(".csv"):
        return load_cluster(text)
    if text not in CLUSTERS:
        known = f"{hint(text, CLUSTERS)}; known: {', '.join(CLUSTERS)}, or the path of a .csv file"
        raise ConfigError(f"unknown list of VMs {text!r}{known}")
    return CLUSTERS[text]


@dataclass(frozen=True)
class Billing:
    """Billing of VMs; by default, as in the paper, every second in use.

    A VM is rented when an executor is placed on it and it is not rented yet. It is given back when what is paid for is
    over and nothing runs on it: with started hours it is kept to the end of the hour, and new executors within that
    hour cost nothing until then.

    Raises:
        ConfigError: A number is out of range.
    """

    granularity_s: float = 0.0  # every part of so many seconds that has begun is paid; 3600 for started hours
    minimum_s: float = 0.0  # least paid time of a rental
    boot_s: float = 0.0  # from rental until executors can run; paid, and jobs wait for it

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not is_number(value) or (value != 0.0 and not 1e-3 <= value <= 1e9):
                raise ConfigError(f"billing.{name} is {value!r}; expected 0, or seconds from 0.001 to 1e+09")

    @property
    def per_second(self) -> bool:
        """Whether it is the paper's billing, under which past rentals do not matter."""
        return self == Billing()

    @property
    def label(self) -> str:
        """A few words for titles."""
        parts = []
        if self.granularity_s:
            hours = self.granularity_s == 3600.0
            parts.append("started hours" if hours else f"started {self.granularity_s:g} s")
        if self.minimum_s:
            parts.append(f"at least {self.minimum_s:g} s")
        if self.boot_s:
            parts.append(f"boot {self.boot_s:g} s")
        return ", ".join(parts) or "billed per second"
