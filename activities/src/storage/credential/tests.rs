use super::{CredentialKind as Kind, *};

/// A value that no message may contain.
const SECRET: &str = "hush-hush";

/// Names and values of environment variables.
type Variables<'a> = &'a [(&'a str, &'a str)];

fn found(url: &str, variables: Variables<'_>, home: &Path) -> Credential {
    let variables: Vec<_> =
        variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let found = Credential::among(&Url::parse(url).unwrap(), &variables, home);
    assert!(!format!("{found:?}").contains(SECRET), "{found:?}");
    found
}

#[test]
fn each_store_says_what_it_is_opened_with() {
    let home = tempfile::tempdir().unwrap();
    let token = home.path().join("token");
    std::fs::write(&token, SECRET).unwrap();
    let token = token.to_str().unwrap();
    let key = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", SECRET)];
    let session = [key[0], key[1], ("AWS_SESSION_TOKEN", SECRET)];
    let irsa = [("AWS_WEB_IDENTITY_TOKEN_FILE", token), ("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")];
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token),
    ];
    let task = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x")];
    let account = ("AZURE_STORAGE_ACCOUNT_NAME", "me");
    let application = [account, ("AZURE_CLIENT_ID", "c"), ("AZURE_TENANT_ID", "t")];
    let secret = [application[0], application[1], application[2], ("AZURE_CLIENT_SECRET", SECRET)];
    let federated =
        [application[0], application[1], application[2], ("AZURE_FEDERATED_TOKEN_FILE", token)];
    let cases: [(&str, Variables<'_>, Kind); 17] = [
        ("s3://b/p", &key, Kind::AccessKey),
        ("s3://b/p", &session, Kind::TemporaryKey),
        ("s3://b/p", &irsa, Kind::WebIdentity),
        ("s3://b/p", &task, Kind::TaskRole),
        ("s3://b/p", &pod, Kind::PodIdentity),
        ("s3://b/p", &[], Kind::InstanceRole),
        ("s3://b/p", &[("AWS_SKIP_SIGNATURE", "true")], Kind::Anonymous),
        ("gs://b/p", &[("GOOGLE_SERVICE_ACCOUNT_KEY", SECRET)], Kind::ServiceAccountKey),
        ("gs://b/p", &[("GOOGLE_BEARER_TOKEN", SECRET)], Kind::BearerToken),
        ("gs://b/p", &[], Kind::MetadataServer),
        ("az://c/p", &[account, ("AZURE_STORAGE_ACCOUNT_KEY", SECRET)], Kind::AccountKey),
        ("az://c/p", &[account, ("AZURE_STORAGE_SAS_TOKEN", SECRET)], Kind::Sas),
        ("az://c/p", &secret, Kind::ClientSecret),
        ("az://c/p", &federated, Kind::WorkloadIdentity),
        ("az://c/p", &[account], Kind::ManagedIdentity),
        ("file:///data", &[], Kind::User),
        ("https://host/p", &key, Kind::Anonymous),
    ];
    for (url, variables, kind) in cases {
        let found = found(url, variables, home.path());
        assert_eq!((found.kind, found.remarks.len()), (kind, 0), "{url} {variables:?}: {found:?}");
    }
}

#[test]
fn what_is_missing_or_not_read_is_said() {
    let home = tempfile::tempdir().unwrap();
    let remark = |url: &str, variables: &[(&str, &str)]| {
        let found = found(url, variables, home.path());
        (found.kind, found.remarks.join("\n"))
    };
    let (kind, said) = remark("s3://b", &[("AWS_ACCESS_KEY_ID", "id")]);
    assert!(kind == Kind::Unusable && said.contains("AWS_SECRET_ACCESS_KEY"), "{said}");
    let empty = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "")];
    assert!(remark("s3://b", &empty).1.contains("AWS_SECRET_ACCESS_KEY is set and empty"));
    let (_, said) = remark("s3://b", &[("AWS_PROFILE", "work")]);
    assert!(
        said.contains("AWS_PROFILE names work") && said.contains("export-credentials"),
        "{said}"
    );
    let (kind, said) = remark("s3://b", &[("AWS_WEB_IDENTITY_TOKEN_FILE", "/token")]);
    assert!(kind == Kind::InstanceRole && said.ends_with("set AWS_ROLE_ARN, too"), "{said}");
    let pod = [("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.23/v1")];
    assert!(remark("s3://b", &pod).1.contains("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"));
    let account = ("AZURE_STORAGE_ACCOUNT_NAME", "me");
    let half = [account, ("AZURE_FEDERATED_TOKEN_FILE", "/token"), ("AZURE_CLIENT_ID", "c")];
    let (kind, said) = remark("az://c", &half);
    assert!(kind == Kind::ManagedIdentity && said.ends_with("set AZURE_TENANT_ID, too"), "{said}");
    let (_, said) = remark("az://c", &[account, ("AZURE_CLIENT_SECRET", SECRET)]);
    assert!(said.ends_with("set AZURE_CLIENT_ID and AZURE_TENANT_ID, too"), "{said}");
    let (_, said) =
        remark("az://c", &[("AZURE_STORAGE_ACCOUNT", "me"), ("AZURE_STORAGE_KEY", SECRET)]);
    assert!(said.contains("set AZURE_STORAGE_ACCOUNT_NAME\n"), "{said}");
    assert!(said.contains("set AZURE_STORAGE_ACCOUNT_KEY"), "{said}");
    std::fs::create_dir(home.path().join(".aws")).unwrap();
    std::fs::write(home.path().join(".aws/config"), "[profile work]").unwrap();
    assert!(remark("s3://b", &[]).1.contains(".aws/config holds profiles"));
}

#[test]
fn a_file_of_google_says_of_which_kind_it_is() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("adc.json");
    let kind = |text: String| {
        std::fs::write(&file, text).unwrap();
        let variables = [("GOOGLE_APPLICATION_CREDENTIALS", file.to_str().unwrap())];
        let found = found("gs://b", &variables, home.path());
        assert!(found.from.contains("adc.json"), "{found:?}");
        found.kind
    };
    let of_type = |name: &str| format!("{{\"type\":\"{name}\",\"private_key\":\"{SECRET}\"}}");
    assert_eq!(kind(of_type("service_account")), Kind::ServiceAccountKey);
    assert_eq!(kind(of_type("authorized_user")), Kind::AuthorizedUser);
    assert_eq!(kind(of_type("external_account")), Kind::Unusable);
    assert_eq!(kind(SECRET.to_owned()), Kind::Unusable);
}
