-- E-mail addresses are compared in any case.

CREATE INDEX users_email_in_any_case ON users (lower(user_email));
