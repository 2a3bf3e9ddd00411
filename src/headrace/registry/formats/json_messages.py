"""The differences between JSON schemas that matter, by the names that Confluent's registry gives them."""

from headrace.registry.formats.differences import Difference, Differences

_SENTENCES = {
    "TYPE_CHANGED": "has another type than in the {writer} schema",
    "TYPE_NARROWED": "takes fewer types than in the {writer} schema",
    "SCHEMA_ADDED": "has a schema where the {writer} schema has none",
    "COMBINED_TYPE_CHANGED": "combines schemas in another way than the {writer} schema",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": "combines schemas that do not cover those of the {writer} schema",
    "PRODUCT_TYPE_EXTENDED": "asks for more schemas in allOf than the {writer} schema",
    "SUM_TYPE_NARROWED": "allows fewer schemas in anyOf or oneOf than the {writer} schema",
    "NOT_TYPE_EXTENDED": "excludes more than the {writer} schema",
    "CONDITION_CHANGED": "has a condition that is not that of the {writer} schema",
    "ENUM_ARRAY_NARROWED": "lacks values of the enum in the {writer} schema",
    "ENUM_ARRAY_CHANGED": "has other values than the {writer} schema",
    "PATTERN_CHANGED": "has another pattern than the {writer} schema",
    "UNIQUE_ITEMS_ADDED": "wants unique items, the {writer} schema does not",
    "CONTAINS_CHANGED": "wants other items to be contained than the {writer} schema",
    "MULTIPLE_OF_EXPANDED": "wants multiples of a multiple of what the {writer} schema wants",
    "MULTIPLE_OF_CHANGED": "wants multiples of something else than the {writer} schema",
    "REQUIRED_ATTRIBUTE_ADDED": "is required, and was not in the {writer} schema",
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        "is new and required; the {writer} schema allows anything there"
    ),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (
        "is new and required; the {writer} schema allows anything there"
    ),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "is new; the {writer} schema allows anything there",
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "is new and required, without a default",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "is new, and does not take what the {writer} schema allows there"
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "is gone, and nothing else is allowed there",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "is gone, and less is allowed there",
    "PATTERN_PROPERTY_ADDED": "is a new pattern for properties that the {writer} schema has no such rule for",
    "PROPERTY_NAMES_ADDED": "has a rule for names that the {writer} schema does not have",
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": "is new; the {writer} schema allows anything there",
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "is new, and does not take what the {writer} schema allows there"
    ),
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": "is gone, and nothing else is allowed there",
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "is gone, and what is allowed there is less",
    "DEPENDENCY_ARRAY_CHANGED": "depends on other properties than in the {writer} schema",
}
_ENDINGS = {  # of a rule's own name
    "_ADDED": "is a rule that the {writer} schema does not have",
    "_INCREASED": "is more than in the {writer} schema",
    "_DECREASED": "is less than in the {writer} schema",
    "_REMOVED": "is nothing any more, and something in the {writer} schema",
    "_NARROWED": "is less than in the {writer} schema",
    "_EXTENDED": "is more than in the {writer} schema",
}


def differs(kind: str, path: str) -> Differences:
    """One difference, as a list to add to others."""
    what = _SENTENCES.get(kind) or next(text for end, text in _ENDINGS.items() if kind.endswith(end))
    return [Difference(kind, path, f"The {{reader}} schema at path {path!r} {what}")]
