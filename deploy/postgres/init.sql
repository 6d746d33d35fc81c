-- The role that the servers are: it owns its database and is no superuser, because row-level
-- security is ignored for those. Run by psql, as a superuser, when the data is still empty.
\getenv password THREADHOLD_PASSWORD
CREATE ROLE threadhold LOGIN NOSUPERUSER NOBYPASSRLS NOCREATEROLE NOCREATEDB PASSWORD :'password';
CREATE DATABASE threadhold OWNER threadhold TEMPLATE template0 ENCODING 'UTF8';
\connect threadhold
-- Ranks the store's vectors in the database; an ordinary role may not bring it.
CREATE EXTENSION IF NOT EXISTS vector;
