// Package databases tests package fence with PostgreSQL, MariaDB and SQLite, and has the recipe for migrations. It is
// a module of its own because of the drivers, which the library does not need. The tests start servers of their own
// from Debian's packages, on Unix sockets in a temporary directory, and end them.
package databases
