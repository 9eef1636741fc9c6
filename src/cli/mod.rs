//! The command line: flags and files in, tables and progress out, one file a subcommand.
