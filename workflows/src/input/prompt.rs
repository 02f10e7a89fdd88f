//! The prompt of a batch in one form: a system prompt, earlier turns, and the instructions in the
//! document's own turn.

use crate::contract::{Message, Role};

/// The checked prompt.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    pub(super) system: Option<String>,
    /// Turns of the user and the model, alternating.
    pub(super) before: Vec<Message>,
    pub(super) instructions: String,
}

/// # Errors
/// A sentence that states the remedy.
pub(super) fn checked(
    system: Option<String>,
    messages: Option<Vec<Message>>,
    instructions: String,
) -> Result<Prompt, String> {
    let Some(mut before) = messages else {
        if instructions.is_empty() {
            return Err("instructions is missing: what to do with each document".to_owned());
        }
        return Ok(Prompt { system, before: Vec::new(), instructions });
    };
    if !instructions.is_empty() {
        return Err("give only one of instructions, messages: the last of the messages says what to do with the document".to_owned());
    }
    if let Some(place) = before.iter().position(|turn| turn.content.trim().is_empty()) {
        return Err(format!("messages[{place}] says nothing: its content is empty"));
    }
    let mut own_system = None;
    if before.first().is_some_and(|first| first.role == Role::System) {
        own_system = Some(before.remove(0).content);
    }
    if own_system.is_some() && system.is_some() {
        return Err(
            "give the system prompt once: in system, or as the first of messages".to_owned()
        );
    }
    let turns = [Role::User, Role::Assistant].into_iter().cycle();
    let in_turn = before.iter().zip(turns).all(|(message, turn)| message.role == turn);
    let last = before.pop_if(|last| last.role == Role::User);
    let Some(last) = last.filter(|_| in_turn) else {
        return Err("messages must be of user and assistant in turn, begin and end with user, and have a system prompt in the first place alone".to_owned());
    };
    // Instructions written as a user's message stay in the user's message.
    let system = Some(own_system.or(system).unwrap_or_default());
    Ok(Prompt { system, before, instructions: last.content })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns(roles: &[Role]) -> Option<Vec<Message>> {
        let of =
            |(place, role): (usize, &Role)| Message { role: *role, content: format!("{place}") };
        Some(roles.iter().enumerate().map(of).collect())
    }

    #[test]
    fn messages_are_a_system_prompt_turns_and_instructions() {
        let (system, user, model) = (Role::System, Role::User, Role::Assistant);
        let whole = checked(None, turns(&[system, user, model, user]), String::new()).unwrap();
        assert_eq!((whole.system.as_deref(), whole.instructions.as_str()), (Some("0"), "3"));
        assert_eq!(whole.before, turns(&[system, user, model]).unwrap()[1..]);
        let one = checked(None, turns(&[user]), String::new()).unwrap();
        assert_eq!((one.system.as_deref(), one.before.len()), (Some(""), 0));
        let plain = checked(None, None, "Sum up.".to_owned()).unwrap();
        assert_eq!((plain.system, plain.before.len()), (None, 0));
        for bad in [&[][..], &[model], &[user, user], &[user, model], &[user, system, user]] {
            let error = checked(None, turns(bad), String::new()).unwrap_err();
            assert!(error.contains("in turn"), "{bad:?}: {error}");
        }
        let error = checked(Some("x".to_owned()), turns(&[system, user]), String::new());
        assert!(error.unwrap_err().contains("once"));
        let error = checked(None, turns(&[user]), "x".to_owned()).unwrap_err();
        assert!(error.contains("only one of instructions, messages"), "{error}");
    }
}
