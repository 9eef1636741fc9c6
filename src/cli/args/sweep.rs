//! The options that describe a sweep, each as a flag, made from the table of settings; a configuration file has the
//! same names.

use clap::builder::ValueParser;
use clap::{Arg, ArgMatches, Args, Command, Error, FromArgMatches};
use settings::{Given, GivenError, ROWS, Row, Takes};

/// What to run, on how many queues, over what transport. Switches take `=false` too, to turn off what
/// a configuration file turns on.
#[derive(Clone, Debug, Default)]
pub struct SweepArgs {
    pub given: Given,
}

/// The flag of a setting.
fn flag(row: &'static Row) -> Arg {
    let flag = Arg::new(row.flag)
        .long(row.flag)
        .help(row.full_help())
        .help_heading(row.heading)
        .value_name(row.takes.value_name())
        .value_parser(ValueParser::new(move |text: &str| -> Result<String, GivenError> {
            Given::default().set(row, text)?;
            Ok(text.to_owned())
        }));
    let flag = match row.short {
        Some(letter) => flag.short(letter),
        None => flag,
    };
    let flag = match row.alias {
        "" => flag,
        name => flag.visible_alias(name),
    };
    match row.takes {
        Takes::Switch => flag.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Takes::List | Takes::One(_) => flag,
    }
}

impl Args for SweepArgs {
    fn augment_args(command: Command) -> Command {
        command.args(ROWS.iter().map(flag))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for SweepArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let mut args = SweepArgs::default();
        args.update_from_arg_matches(matches)?;
        Ok(args)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        for row in ROWS {
            if let Some(text) = matches.get_one::<String>(row.flag) {
                self.given
                    .set(row, text)
                    .map_err(|error| Error::raw(clap::error::ErrorKind::ValueValidation, error))?;
            }
        }
        Ok(())
    }
}
