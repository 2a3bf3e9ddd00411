"""Options from a client's properties file: `spark.read.format("headrace").options(**load_options(FILE))`."""

from pathlib import Path

from headrace.client.properties import InvalidProperties, parse_properties
from headrace.spark.errors import SparkError


def load_options(path: Path | str) -> dict[str, str]:
    """Return the settings in the file as options of format("headrace"); Spark's format("kafka") has the same.

    The file is Kafka's --command-config, such as DIR/client.properties of `headrace up --secure`. For Spark's
    own connector it has to have the settings of Java's clients.
    """
    try:
        settings = parse_properties(Path(path).read_text("utf-8"), str(path))
    except OSError as error:
        raise SparkError(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from error
    except UnicodeDecodeError as error:
        raise SparkError(f"{path} is not a properties file in UTF-8") from error
    except InvalidProperties as error:
        raise SparkError(str(error)) from error
    return {f"kafka.{name}": value for name, value in settings.items()}
