-- Creates the role and the database of the servers. The role is not a superuser, because row-level
-- security does not apply to superusers. psql runs this as a superuser when the cluster is new.
\getenv password THREADHOLD_PASSWORD
CREATE ROLE threadhold LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD :'password';
CREATE DATABASE threadhold OWNER threadhold TEMPLATE template0 ENCODING 'UTF8';
\connect threadhold
-- Vector search of the store. An ordinary role must not create the extension.
CREATE EXTENSION IF NOT EXISTS vector;
