"""ZooKeeper: the one place where brokers keep what they share."""
