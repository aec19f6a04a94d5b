"""What a broker does as a whole: open its node, load logs, elect coordinators, meet failures."""
