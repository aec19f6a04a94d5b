"""What elections of each partition go by: settings of its topic and cluster, at one moment."""

from broker.controller.active.broker_states import BrokerStates
from broker.controller.active.partition_change import NO_BROKERS, Election, Recovery, Terms
from broker.controller.configs.configs import MIN_ISR, ConfigRules
from broker.controller.images.cluster_image import ClusterImage, TopicImage
from broker.controller.images.features import ELR_VERSION
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.images.replica_directories import replicas_offline
from config.errors import InvalidConfigError
from config.topic import TOPIC_KEYS

UNCLEAN = "unclean.leader.election.enable"
RECOVERY = "unclean.recovery.strategy"


class TopicTerms:
    """Makes the terms of partitions; for one image, and brokers as they are."""

    def __init__(
        self,
        image: ClusterImage,
        rules: ConfigRules,
        states: BrokerStates,
    ) -> None:
        self._image = image
        self._may_lead = states.may_lead
        self._without_lease = states.without_lease
        settings = rules.effective(image)
        self._min_isr = settings.min_insync_replicas
        self._unclean = settings.unclean_leader_election_enable
        self._recovery = settings.unclean_recovery_strategy
        self._has_elr = image.features.get(ELR_VERSION, 0) > 0

    def of(
        self,
        topic: TopicImage,
        partition: PartitionImage,
        *,
        election: Election | None = None,
        lost: frozenset[int] = NO_BROKERS,
        may_also_lead: int | None = None,
        chosen: int = NO_LEADER,
    ) -> Terms:
        """The terms of one partition.

        Args:
            topic: Whose.
            partition: A broker whose replica is in a log directory that does not work may not lead
                it, whatever else it leads.
            election: Who may lead; None: as the topic's settings say.
            lost: Brokers that leave ISR and ELR: their logs may lack what they had.
            may_also_lead: A broker that goes on leading although it wants to stop.
            chosen: The replica with the longest log; `NO_LEADER`: not known.
        """
        own = _parsed(topic, MIN_ISR)
        min_isr = own if isinstance(own, int) else self._min_isr
        takes_added = election is Election.UNCLEAN
        if election is None:
            allowed = _parsed(topic, UNCLEAN)
            is_allowed = self._unclean if allowed is None else bool(allowed)
            election = Election.UNCLEAN if is_allowed else Election.ONLINE
        may_lead = self._may_lead if may_also_lead is None else self._may_lead | {may_also_lead}
        offline = replicas_offline(self._image, partition)
        if offline:
            may_lead -= offline
        return Terms(
            may_lead,
            min_isr,
            election,
            lost,
            self._has_elr,
            takes_added,
            Recovery(_parsed(topic, RECOVERY) or self._recovery),
            chosen,
            self._without_lease,
        )


def _parsed(topic: TopicImage, key: str) -> object:
    """A setting of the topic's own; None where it has none, or one that cannot be read."""
    text = topic.overrides.get(key)
    if text is None:
        return None
    try:
        return TOPIC_KEYS[key].parse(text)
    except InvalidConfigError:
        # What an earlier release accepted.
        return None
