"""Settings of clients for the listeners of `secured_kafka`: those that work, and mistakes."""

from typing import Final

WRONG: Final = "guessed"
TLS: Final = "security.protocol=SSL ssl.ca.location=$ca"
JAVA: Final = "security.protocol=SSL ssl.truststore.type=PEM ssl.truststore.location=$ca"
PKCS12: Final = (
    "security.protocol=SSL ssl.truststore.location=$ca_pkcs12 ssl.truststore.password=$store_password"
)
USER: Final = "security.protocol=SASL_PLAINTEXT sasl.username=$user sasl.password=$password"
TLS_USER: Final = f"{USER} {TLS} security.protocol=SASL_SSL"
JAAS: Final = "security.protocol=SASL_PLAINTEXT sasl.jaas.config=$"

WAYS: Final = {
    "no_security": ("PLAINTEXT", ""),
    "a_truststore": ("TLS", JAVA),
    "a_truststores_text": ("TLS", "security.protocol=SSL ssl.truststore.certificates=$ca_text"),
    "stores_in_pkcs12": (
        "MUTUAL",
        (
            f"{PKCS12} ssl.keystore.type=JKS ssl.keystore.location=$pkcs12 "
            "ssl.keystore.password=$store_password"
        ),
    ),
    "a_java_cipher_suite": ("TLS", f"{PKCS12} ssl.cipher.suites=TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384"),
    "tls_1_2": ("TLS", f"{JAVA} ssl.enabled.protocols=TLSv1.2"),
    "a_ca": ("TLS", TLS),
    "a_directory_of_cas": ("TLS", f"{TLS} ssl.ca.location=$ca_directory"),
    "a_cas_text": ("TLS", "security.protocol=ssl ssl.ca.pem=$ca_text"),
    "a_keystore": ("MUTUAL", f"{JAVA} ssl.keystore.type=PEM ssl.keystore.location=$both"),
    "a_keystores_text": (
        "MUTUAL",
        (
            f"{JAVA} ssl.keystore.type=PEM ssl.keystore.certificate.chain=$certificate_text "
            "ssl.keystore.key=$key_text"
        ),
    ),
    "an_encrypted_key": (
        "MUTUAL",
        f"{TLS} ssl.certificate.location=$certificate ssl.key.location=$key ssl.key.password=$key_password",
    ),
    "the_text_of_a_certificate": (
        "MUTUAL",
        f"{TLS} ssl.certificate.pem=$certificate_text ssl.key.pem=$key_text",
    ),
    "any_host": ("ELSEWHERE", f"{JAVA} ssl.endpoint.identification.algorithm="),
    "no_host": ("ELSEWHERE", f"{TLS} ssl.endpoint.identification.algorithm=none"),
    "anybody": ("ELSEWHERE", "security.protocol=SSL enable.ssl.certificate.verification=false"),
    "plain": ("USERS", f"{USER} sasl.mechanisms=PLAIN"),
    "plain_by_jaas": ("USERS", f"{JAAS}plain sasl.mechanism=PLAIN"),
    "scram_256": ("USERS", f"{USER} sasl.mechanisms=SCRAM-SHA-256"),
    "scram_256_by_jaas": ("USERS", f"{JAAS}scram sasl.mechanism=SCRAM-SHA-256"),
    "scram_512": ("USERS", f"{USER} sasl.mechanism=SCRAM-SHA-512"),
    "plain_over_tls": ("BOTH", f"{TLS_USER} sasl.mechanism=PLAIN"),
    "scram_over_tls": ("BOTH", f"{JAAS}scram {JAVA} security.protocol=SASL_SSL sasl.mechanism=SCRAM-SHA-512"),
}

_SIGNED: Final = (
    "the certificate of {at} cannot be trusted: unable to get local issuer certificate; "
    "name who signed it with ssl.ca.location or ssl.truststore.location"
)
_OURS: Final = (
    "{at} wants a certificate of ours: name it with ssl.certificate.location and ssl.key.location, "
    "or with ssl.keystore.location"
)
_CREDENTIALS: Final = (
    "Authentication failed during authentication due to invalid credentials with SASL mechanism"
)
_RIGHT: Final = "are user name and password right?"
_FILES: Final = f"{TLS} ssl.certificate.location=$certificate ssl.key.location=$key"

MISTAKES: Final = {
    "password": (
        "USERS",
        f"{USER} sasl.mechanism=PLAIN sasl.password={WRONG}",
        f"{{at}} refuses {{user}}: Authentication failed: Invalid username or password; {_RIGHT}",
    ),
    "password_of_scram": (
        "BOTH",
        f"{TLS_USER} sasl.mechanism=SCRAM-SHA-512 sasl.password={WRONG}",
        f"{{at}} refuses {{user}}: {_CREDENTIALS} SCRAM-SHA-512; {_RIGHT}",
    ),
    "user": (
        "USERS",
        f"{USER} sasl.mechanism=SCRAM-SHA-256 sasl.username=eve",
        f"{{at}} refuses eve: {_CREDENTIALS} SCRAM-SHA-256; {_RIGHT}",
    ),
    "mechanism": (
        "BOTH",
        f"{TLS_USER} sasl.mechanism=SCRAM-SHA-256",
        "{at} does not take SCRAM-SHA-256, only PLAIN, SCRAM-SHA-512: change sasl.mechanism",
    ),
    "ca": ("TLS", f"{TLS} ssl.ca.location=$other_ca", _SIGNED),
    "ca_of_the_system": ("TLS", "security.protocol=SSL", _SIGNED),
    "host": (
        "ELSEWHERE",
        TLS,
        (
            "the certificate of {at} cannot be trusted: IP address mismatch, certificate is not valid for "
            "'127.0.0.1'; connect by a name that it is for"
        ),
    ),
    "no_certificate": (
        "MUTUAL",
        f"{TLS} ssl.enabled.protocols=TLSv1.2",  # in 1.3 the news may come too late, or not at all
        _OURS,
    ),
    "certificate_of_a_stranger": (
        "MUTUAL",
        f"{TLS} ssl.enabled.protocols=TLSv1.2 ssl.certificate.location=$stranger",
        "{at} does not trust our certificate, ssl.certificate.location (certificate unknown)",
    ),
    "plaintext_to_tls": ("TLS", "", "{at} speaks TLS: set security.protocol to SSL or SASL_SSL"),
    "sasl_without_tls": (
        "BOTH",
        f"{USER} sasl.mechanism=PLAIN",
        "{at} speaks TLS: set security.protocol to SSL or SASL_SSL",
    ),
    "tls_to_plaintext": (
        "PLAINTEXT",
        TLS,
        (
            "no broker answers at {at}: {at} cannot be reached: the broker closed the connection; "
            "is security.protocol=SSL right?"
        ),
    ),
    "sasl_to_plaintext": (
        "PLAINTEXT",
        f"{USER} sasl.mechanism=PLAIN",
        "{at} knows no SASL: is security.protocol right?",
    ),
    "plaintext_to_sasl": (
        "USERS",
        "",
        (
            "no broker answers at {at}: {at} does not answer: the broker closed the connection; "
            "is security.protocol=PLAINTEXT right?"
        ),
    ),
    "missing_ca": (
        "TLS",
        f"{TLS} ssl.ca.location=$missing",
        "ssl.ca.location is {missing}, where there is no file",
    ),
    "empty_ca": ("TLS", f"{TLS} ssl.ca.location=$empty", "ssl.ca.location is {empty}, which is empty"),
    "missing_certificate": (
        "MUTUAL",
        f"{_FILES} ssl.certificate.location=$missing ssl.key.password=$key_password",
        "ssl.certificate.location is {missing}, where there is no file",
    ),
    "no_password_of_the_key": (
        "MUTUAL",
        _FILES,
        "ssl.key.password is missing: ssl.key.location is encrypted",
    ),
    "password_of_the_key": (
        "MUTUAL",
        f"{_FILES} ssl.key.password={WRONG}",
        "ssl.key.password is wrong: ssl.key.location is encrypted",
    ),
    "another_key": (
        "MUTUAL",
        f"{_FILES} ssl.key.location=$stranger",
        "ssl.key.location is not the key of ssl.certificate.location",
    ),
    "password_of_a_truststore": (
        "TLS",
        f"{PKCS12} ssl.truststore.password={WRONG}",
        "ssl.truststore.password is wrong, or {ca_pkcs12}, a PKCS12 store, is damaged",
    ),
    "no_key": (
        "MUTUAL",
        f"{TLS} ssl.certificate.location=$certificate",
        "ssl.certificate.location holds no private key in PEM",
    ),
}
