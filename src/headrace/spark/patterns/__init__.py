"""Java's regular expressions, which select topics in the option subscribePattern."""
