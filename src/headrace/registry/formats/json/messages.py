"""The incompatible differences of JSON schemas, by the names of Confluent's registry."""

from headrace.registry.formats.differences import Difference, Differences

_SENTENCES = {
    "TYPE_CHANGED": "has another type than in the {writer} schema",
    "TYPE_NARROWED": "takes fewer types than in the {writer} schema",
    "SCHEMA_ADDED": "has a schema where the {writer} schema has none",
    "COMBINED_TYPE_CHANGED": "combines schemas by another keyword than the {writer} schema",
    "COMBINED_TYPE_SUBSCHEMAS_CHANGED": "combines schemas that do not cover those of the {writer} schema",
    "PRODUCT_TYPE_EXTENDED": "has more schemas in allOf than the {writer} schema",
    "SUM_TYPE_NARROWED": "allows fewer schemas in anyOf or oneOf than the {writer} schema",
    "NOT_TYPE_EXTENDED": "excludes more than the {writer} schema",
    "CONDITION_CHANGED": "has another condition than the {writer} schema",
    "ENUM_ARRAY_NARROWED": "lacks values of the enum in the {writer} schema",
    "ENUM_ARRAY_CHANGED": "has other values than the {writer} schema",
    "PATTERN_CHANGED": "has another pattern than the {writer} schema",
    "UNIQUE_ITEMS_ADDED": "requires unique items, the {writer} schema does not",
    "CONTAINS_CHANGED": "requires that other items are contained than the {writer} schema",
    "MULTIPLE_OF_EXPANDED": "has a multiple of the multipleOf in the {writer} schema",
    "MULTIPLE_OF_CHANGED": "has another multipleOf than the {writer} schema",
    "REQUIRED_ATTRIBUTE_ADDED": "is required, and is not in the {writer} schema",
    "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": (
        "is new and required; the {writer} schema allows anything there"
    ),
    "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL": (
        "is new and required; the {writer} schema allows anything there"
    ),
    "OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL": "is new; the {writer} schema allows anything there",
    "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL": "is new and required, without a default",
    "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "is new, and does not accept all values that the {writer} schema allows there"
    ),
    "PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL": "is removed, and no other property is allowed there",
    "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "is removed, and less is allowed there",
    "PATTERN_PROPERTY_ADDED": "is a pattern of properties that the {writer} schema does not have",
    "PROPERTY_NAMES_ADDED": "restricts names, the {writer} schema does not",
    "ITEM_ADDED_TO_OPEN_CONTENT_MODEL": "is new; the {writer} schema allows anything there",
    "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": (
        "is new, and does not accept all values that the {writer} schema allows there"
    ),
    "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL": "is removed, and no other item is allowed there",
    "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL": "is removed, and less is allowed there",
    "DEPENDENCY_ARRAY_CHANGED": "depends on other properties than in the {writer} schema",
}
_ENDINGS = {  # of all other kinds
    "_ADDED": "is a restriction that the {writer} schema does not have",
    "_INCREASED": "is more than in the {writer} schema",
    "_DECREASED": "is less than in the {writer} schema",
    "_REMOVED": "is false, and allows values in the {writer} schema",
    "_NARROWED": "allows less than in the {writer} schema",
    "_EXTENDED": "is more than in the {writer} schema",
}


def differs(kind: str, path: str) -> Differences:
    """Return one difference, as a list that can be added to others."""
    what = _SENTENCES.get(kind) or next(text for end, text in _ENDINGS.items() if kind.endswith(end))
    return [Difference(kind, path, f"The {{reader}} schema at path {path!r} {what}")]
