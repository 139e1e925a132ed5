// A certified OpenID Connect provider on this machine's own address, with accounts that the tests sign in with.
// node provider.mjs PORT REDIRECT_URI CLIENT_ID CLIENT_SECRET; says "ready" once it answers.
import Provider from 'oidc-provider'

const [port, redirectUri, clientId, clientSecret] = process.argv.slice(2)
const issuer = `http://localhost:${port}` // another site than the workbench's 127.0.0.1, as a real one is
const ACCOUNTS = {
  dpo: true,
  engineer: true,
  auditor: true,
  admin: true,
  both: true, // a member of two organisations
  nobody: true, // a member of none
  unverified: false // whether the e-mail address was ever looked at
}

console.warn = console.info = () => {} // it says at length that its keys and its forms are for tests
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: clientId,
      client_secret: clientSecret,
      redirect_uris: [redirectUri],
      post_logout_redirect_uris: [redirectUri]
    }
  ],
  claims: { openid: ['sub'], profile: ['name'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false, // what Streamlit reads is the ID token
  cookies: { keys: ['only for tests'] },
  findAccount: (_, sub) =>
    sub in ACCOUNTS
      ? { accountId: sub, claims: () => ({ sub, email: `${sub}@example.test`, email_verified: ACCOUNTS[sub] }) }
      : undefined,
  loadExistingGrant: async (ctx) => {
    const { client, session } = ctx.oidc
    const grant = new ctx.oidc.provider.Grant({ clientId: client.clientId, accountId: session.accountId })
    grant.addOIDCScope('openid email profile')
    await grant.save()
    return grant
  },
  interactions: { url: (_, { uid }) => `/interaction/${uid}` },
  features: {
    devInteractions: { enabled: false }, // its pages fetch a font from elsewhere
    rpInitiatedLogout: {
      logoutSource: (ctx, form) => {
        ctx.body = `<!doctype html>${form}<button form="op.logoutForm" name="logout" value="yes">Yes, sign me out</button>`
      }
    }
  }
})

const FORM = `<!doctype html><title>Provider</title>
<form method="post"><label>Account <input name="account" autofocus></label><button>Sign me in</button></form>`

provider.use(async (ctx, next) => {
  if (!ctx.path.startsWith('/interaction/')) return next()
  if (ctx.method === 'GET') {
    ctx.body = FORM
    return
  }
  let sent = ''
  for await (const part of ctx.req) sent += part
  const login = { accountId: new URLSearchParams(sent).get('account') }
  await provider.interactionFinished(ctx.req, ctx.res, { login }, { mergeWithLastSubmission: false })
  ctx.respond = false
})
provider.listen(Number(port), '127.0.0.1', () => console.log('ready'))
