"""What every coordinator is made of, whether it coordinates groups, transactions or share groups. Pure."""
