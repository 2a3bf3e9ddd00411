"""Hadoop's settings for S3."""

from headrace.spark.launcher import s3a_settings


def test_amazons_endpoint_needs_no_setting() -> None:
    assert s3a_settings({}) == {}
    assert s3a_settings({"AWS_REGION": "eu-central-1"}) == {
        "spark.hadoop.fs.s3a.endpoint.region": "eu-central-1"
    }


def test_the_endpoint_of_another_server_is_passed_on() -> None:
    found = s3a_settings({"AWS_ENDPOINT_URL": "http://a:9000", "AWS_ENDPOINT_URL_S3": "http://b:9000"})
    assert found == {
        "spark.hadoop.fs.s3a.endpoint": "http://b:9000",
        "spark.hadoop.fs.s3a.path.style.access": "true",
    }


def test_credentials_are_left_to_spark() -> None:
    given = {"AWS_ACCESS_KEY_ID": "someone", "AWS_SECRET_ACCESS_KEY": "wonderland"}
    assert s3a_settings(given) == {}
