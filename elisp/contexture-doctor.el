;;; contexture-doctor.el --- Find and mend what is wrong with the set-up  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-doctor' checks everything that the commands need and says
;; what is wrong and what to do.  Also here is what it recommends: to get
;; the server, set up models and coding agents, and trust the templates of
;; a project.

;;; Code:

(require 'json)
(require 'project)
(require 'contexture-rpc)
(eval-when-compile (require 'subr-x))

(declare-function contexture-conversation--trust-changed "contexture-conversation" (project))
(declare-function auth-source-search "auth-source" (&rest spec))
(declare-function auth-source-forget+ "auth-source" (&rest spec))
(declare-function custom-file "cus-edit" (&optional no-error))
(declare-function customize-save-variable "cus-edit" (variable value &optional comment))
(declare-function url-generic-parse-url "url-parse" (url))
(declare-function url-host "url-parse" (cl-x) t)
(defvar contexture-doctor-timeout)
(defvar contexture-doctor--address)
(defvar contexture-conversation--session)
(defvar contexture-gptel-mode)
(defvar contexture-mode)
(defvar auth-source-creation-prompts)
(declare-function url-portspec "url-parse" (urlobj) t)

;;; Get the server's program

;; `contexture-install-server' downloads the program of this version for
;; this system, outside of the package, whose folder an upgrade deletes.  The
;; package lists the checksum of each program, so whoever serves the file
;; cannot change it.  Where there is no program, Cargo can build one.
;; Everything is asked before it is done, and nothing blocks Emacs: curl
;; downloads, with a limit of time.

(defcustom contexture-install 'ask
  "Whether `contexture-install-server' may install the server's program.
`ask' means that it asks first.  `never' means that it does nothing, for
those who get programs in another way."
  :type '(choice (const :tag "After asking" ask) (const :tag "Never" never))
  :group 'contexture)

(defconst contexture-install--sources "https://github.com/contexture/contexture"
  "Address of the sources.")

(defvar contexture-install--releases
  (format "%s/releases/download/server-%s/" contexture-install--sources
          contexture--version)
  "Address of the folder with the programs of this version.")

(defvar contexture-install--checksums
  '(;; begin: scripts/checksums writes these
    ;; end
    )
  "Alist from systems to the SHA-256 checksums of their programs.")

(defvar contexture-install--curl
  '("curl" "--fail" "--location" "--silent" "--show-error" "--proto" "=https")
  "Program that downloads, with its options.")

(defconst contexture-install--time-limit 600
  "Maximum number of seconds that a download may take.")

(defconst contexture-install--largest (* 200 1024 1024)
  "Maximum size of a program in bytes.")

(defvar contexture-install--patience 10
  "Number of seconds within which a new program must print its version.")

(defvar contexture-install--download nil
  "Process of the download that is under way, or nil.")

;;;###autoload
(defun contexture-install-server (&optional build)
  "Install the server's program of this version, after asking.
Download it and compare its checksum with the one in this package.  If the
package has none for this system, or with a prefix argument or BUILD, build
the program with Cargo.  See `contexture-install'."
  (interactive "P")
  (when (eq contexture-install 'never)
    (user-error "The option `contexture-install' says that nothing is installed"))
  (let* ((system (contexture-install--system system-configuration))
         (checksum (cdr (assoc system contexture-install--checksums))))
    (cond (build (contexture-install--offer-cargo nil))
          ((not checksum)
           (contexture-install--offer-cargo
            (format "No release has a program of Contexture %s for %s.  "
                    contexture--version (or system system-configuration))))
          ((not (executable-find (car contexture-install--curl)))
           (contexture-install--offer-cargo "A download needs curl, which is not installed.  "))
          ((and (process-live-p contexture-install--download)
                (not (contexture--y-or-n-p "The server is already being downloaded; start the download again? "))))
          ((contexture--y-or-n-p (format "Download %s, check it, and install it as %s? "
                             (contexture-install--address system)
                             (contexture--abbreviate (contexture--installed-server))))
           (contexture-install--stop)
           (contexture-install--start (contexture-install--address system) checksum)))))

(defun contexture-install--system (configuration)
  "Return the name of the system that CONFIGURATION describes, or nil.
The programs for Linux need no C library; Android is another system."
  (let ((case-fold-search nil))
    (when (string-match "\\`\\(x86_64\\|amd64\\|aarch64\\|arm64\\)-[^ ]*\\(linux\\|darwin\\)\\([^ ]*\\)\\'"
                        configuration)
      (let ((machine (match-string 1 configuration))
            (system (match-string 2 configuration)))
        (unless (string-match-p "android\\|gnux32\\|_ilp32" (match-string 3 configuration))
          (format "%s-%s"
                  (pcase machine ("amd64" "x86_64") ("arm64" "aarch64") (_ machine))
                  system))))))

(defun contexture-install--address (system)
  "Return the address of the program for SYSTEM."
  (format "%scontexture-%s-%s" contexture-install--releases contexture--version system))

;;;; Downloading

(defun contexture-install--stop ()
  "Stop the download that is under way, if there is one."
  (when (process-live-p contexture-install--download)
    (set-process-sentinel contexture-install--download #'ignore)
    (delete-process contexture-install--download))
  (setq contexture-install--download nil))

(defun contexture-install--start (address checksum)
  "Download ADDRESS, a program that must have CHECKSUM, in another process."
  (let ((new (concat (contexture--installed-server) ".new")))
    (condition-case problem
        (make-directory (file-name-directory new) t)
      (file-error (contexture--user-error "%s" (error-message-string problem))))
    (contexture--message "Downloading Contexture's server…")
    (setq contexture-install--download
          (make-process
           :name "contexture download" :noquery t :connection-type 'pipe
           :buffer (generate-new-buffer " *contexture download*")
           :command `(,@contexture-install--curl
                      "--max-time" ,(number-to-string contexture-install--time-limit)
                      "--max-filesize" ,(number-to-string contexture-install--largest)
                      "--output" ,new ,address)
           :sentinel (apply-partially #'contexture-install--fetched new checksum)))))

(defun contexture-install--fetched (new checksum process _event)
  "Install the program NEW, which PROCESS has downloaded, if it has CHECKSUM."
  (unless (process-live-p process)
    (let* ((said (with-current-buffer (process-buffer process)
                   (contexture--trim (buffer-string))))
           (problem (cond ((not (eql 0 (process-exit-status process)))
                           (format "The download failed: %s"
                                   (string-trim-left said "curl: ([0-9]+) ")))
                          ((not (equal checksum (contexture-install--checksum new)))
                           "The downloaded file is damaged or altered: its checksum is wrong"))))
      (kill-buffer (process-buffer process))
      (setq contexture-install--download nil)
      (if problem
          (contexture-install--fail problem new)
        (set-file-modes new #o755)
        (contexture--probe-program
         (list new "--version") contexture-install--patience
         (lambda (status output)
           (if (and (eq status 0)
                    (string-prefix-p (format "contexture %s" contexture--version) output))
               (contexture-install--put new)
             (contexture-install--fail
              (format "The downloaded program does not run here: %s"
                      (if (eq status 0) (contexture--trim output) status))
              new))))))))

(defun contexture-install--checksum (file)
  "Return the SHA-256 checksum of FILE, or nil if it cannot be read."
  (ignore-errors
    (with-temp-buffer
      (set-buffer-multibyte nil)
      (insert-file-contents-literally file)
      (secure-hash 'sha256 (current-buffer)))))

(defun contexture-install--put (new)
  "Put the program NEW in its place, and say so."
  (condition-case problem
      (progn
        (rename-file new (contexture--installed-server) t)
        (contexture--message
         "Installed Contexture's server: %s%s"
         (contexture--abbreviate (contexture--installed-server))
         (cond (contexture-server-command "; set `contexture-server-command' to nil to use it")
               ((contexture-running-p) "; M-x contexture-disconnect ends the old one"))))
    (file-error (contexture-install--fail (error-message-string problem) new))))

(defun contexture-install--fail (problem new)
  "Delete the file NEW, and say PROBLEM and what else can be done."
  (ignore-errors (delete-file new))
  (contexture--message "%s; nothing was installed%s" problem
                       (when (executable-find "cargo")
                         "; C-u M-x contexture-install-server builds it with Cargo")))

;;;; Building

(defun contexture-install--offer-cargo (reason)
  "Say REASON, a sentence or nil, and offer to build the program with Cargo.
Signal an error if Cargo is not installed."
  (unless (executable-find "cargo")
    (contexture--user-error
     "%sTo build it, install Rust from https://rustup.rs, then try again" reason))
  (let ((command (format "cargo install --locked --git %s --tag server-%s contexture"
                         contexture-install--sources contexture--version)))
    (when (contexture--y-or-n-p (format "%sRun `%s'? " (or reason "") command))
      (let ((default-directory (expand-file-name "~/")))
        (compilation-start command nil (lambda (_) "*contexture: cargo*"))))))

;;; Set up models

;; Sends `contexture-providers' to each server that Emacs connects to,
;; before the waiting calls, so that a restarted server knows them too.
;; Keys in `auth-source' are looked up outside of the process filter,
;; since a look-up may ask for a passphrase; Emacs then keeps the function
;; that returns the key, never the key.  Buffers that show messages leave keys
;; out (see `contexture--redact').

(defconst contexture-provider--keys
  '(:kind :model :base-url :auth-source :api-key-env :api-key-command :key-header
          :headers :api-version :effort :temperature :top-p :extra :context :ca-file
          :proxy :first-byte :silence :thinks :answer-tokens :price-input
          :price-output :default :script)
  "Keywords that an entry of `contexture-providers' may have.")

(defconst contexture-provider--further
  '(("effort" "off" "low" "medium" "high")
    ("headers")
    ("temperature" . number)
    ("top-p" . number)
    ("extra")
    ("key-header")
    ("api-version")
    ("proxy")
    ("ca-file")
    ("first-byte" . number)
    ("silence" . number)
    ("answer-tokens" . number))
  "Settings that are asked for on demand, with the kind of their values.
That is a list of words, `number', or nil for a text.")

(defvar contexture-provider--secrets (make-hash-table :test #'equal)
  "Hash table from (HOST USER) to a function that returns the API key.")

(defvar contexture-provider--pending nil
  "Names of the providers whose keys are being looked up.")

(defvar contexture-provider--waiting nil
  "Functions to call when no key is being looked up any more.")

(defvar contexture-provider--awaited nil
  "Alist of (NAME . PHRASE) for the providers that were just set up.
Once the server knows such a provider, a message shows its name and PHRASE.")

(defvar contexture-provider--problems nil
  "Alist from the name of a provider to the reason why the server lacks it.")

;;;; Telling a server

(defvar contexture-provider--told nil
  "Entries of `contexture-providers' that the server in use was sent.")

(defun contexture-provider--tell-all (connection)
  "Send all providers to CONNECTION's server, in order."
  (setq contexture-provider--told nil)
  (dolist (entry contexture-providers)
    (contexture-provider--tell connection entry)))

(defun contexture-provider--tell-changed ()
  "Send the server in use what has changed in `contexture-providers'.
Models that are no longer there are removed from the server, too."
  (when (contexture-running-p)
    (dolist (name (delete-dups (delq nil (mapcar #'car-safe contexture-provider--told))))
      (unless (assoc name contexture-providers)
        (contexture-provider--untell name)))
    (dolist (entry contexture-providers)
      (unless (member entry contexture-provider--told)
        (contexture-provider--tell contexture--connection entry)))))

(defun contexture-provider--forget-told (name)
  "Forget that the server was sent the provider NAME."
  (setq contexture-provider--told
        (cl-remove name contexture-provider--told :key #'car-safe :test #'equal)))

(defun contexture-provider--untell (name)
  "Remove the provider NAME from the server in use."
  (contexture-provider--forget-told name)
  (contexture-provider--settled name nil)
  (let ((contexture--own-call t))
    (contexture--call contexture--connection 'remove-provider (list :name name)
                      (lambda (_) (contexture--later #'run-hooks 'contexture-providers-hook))
                      #'ignore)))

(defun contexture-provider--tell (connection entry)
  "Send ENTRY of `contexture-providers' to CONNECTION's server.
If its key must be looked up first, the entry is sent after that."
  (contexture-provider--forget-told (car-safe entry))
  (push entry contexture-provider--told)
  (condition-case problem
      (let* ((params (contexture-provider--params entry))
             (place (contexture-provider--place entry))
             (secret (and place (gethash place contexture-provider--secrets))))
        (if (or (null place) secret)
            (contexture-provider--send connection (car entry) params secret)
          (push (car entry) contexture-provider--pending)
          (contexture--later #'contexture-provider--look-up connection entry params
                             place)))
    (error (contexture-provider--failed (car-safe entry)
                                        (error-message-string problem)))))

(defun contexture-provider--params (entry)
  "Return the parameters of `configure-provider' for ENTRY, without a key.
Signal an error if ENTRY is not a valid entry of `contexture-providers'."
  (pcase-let ((`(,name . ,plist) entry))
    (unless (and (stringp name) (proper-list-p plist) (cl-evenp (length plist)))
      (user-error "An entry of `contexture-providers' must be (NAME . PLIST)"))
    (cl-loop for key in plist by #'cddr
             unless (memq key contexture-provider--keys)
             do (contexture--user-error "`contexture-providers' takes no %s; it takes %s" key
                            (mapconcat #'symbol-name contexture-provider--keys " ")))
    (cons :name
          (cons name
                (cl-loop for (key value) on plist by #'cddr
                         unless (or (null value) (eq key :auth-source))
                         nconc (list key
                                     (cond ((eq key :kind) (contexture--name value))
                                           ((and (eq key :extra) (consp value))
                                            (json-encode value))
                                           (t value))))))))

(defun contexture-provider--send (connection name params secret)
  "Send the provider NAME with PARAMS to CONNECTION's server.
SECRET is a function that returns the key, or nil."
  (let ((contexture--own-call t))
    (contexture--call
     connection 'configure-provider
     (if secret (append params (list :api-key (funcall secret))) params)
     (lambda (_)
       (contexture-provider--accepted name)
       (contexture--later #'run-hooks 'contexture-providers-hook))
     (lambda (problem)
       (contexture-provider--failed
        name (if (eql (plist-get problem :code) -32601)
                 "this server accepts no providers from Emacs; install a newer one"
               (plist-get problem :message)))))))

(defun contexture-provider--accepted (name)
  "Record that the server now has the provider NAME.
If it was just set up, show a message and try it."
  (let ((awaited (assoc name contexture-provider--awaited)))
    (contexture-provider--settled name nil)
    (when awaited
      (contexture--later #'contexture--message
                         "Added provider %s %s"
                         name (cdr awaited))
      (contexture-provider--try name))))

(defun contexture-provider--try (name)
  "Ask the provider NAME for its models, and tell the user if it fails."
  (contexture-request-async
   'list-providers (list :models t :provider name)
   :success #'ignore
   :error (lambda (problem)
            (contexture--message "Contexture: cannot list the models of provider %s: %s; \
start it, or correct it with M-x contexture-configure-provider"
                                 name (plist-get problem :message)))))

(defun contexture-provider--settled (name problem)
  "Record that the server has the provider NAME, or why not.
PROBLEM is the reason, a string, or nil."
  (setf (alist-get name contexture-provider--awaited nil t #'equal) nil
        (alist-get name contexture-provider--problems nil t #'equal) problem))

(defun contexture-provider--failed (name reason)
  "Tell the user the REASON why the server lacks the provider NAME."
  (contexture-provider--settled name reason)
  (contexture--later #'contexture--message "Contexture: provider %s: %s" name reason))

;;;; Keys

(defun contexture-provider--place (entry)
  "Return (HOST USER) for finding the key of ENTRY in auth-source.
USER nil means any user.  Return nil if auth-source does not have the key."
  (let* ((plist (cdr entry))
         (source (plist-get plist :auth-source))
         (address (or (plist-get plist :base-url)
                      (cdr (assoc (contexture--name (plist-get plist :kind))
                                  contexture-provider--kinds)))))
    (when source
      (list (or (plist-get (and (listp source) source) :host)
                (and address
                     (progn (require 'url-parse)
                            (url-host (url-generic-parse-url address))))
                (contexture--user-error "The :auth-source of provider %s needs a :host, under which the key is kept"
                                        (car entry)))
            (plist-get (and (listp source) source) :user)))))

(defun contexture-provider--look-up (connection entry params place)
  "Look up the key of ENTRY at PLACE; send it with PARAMS to CONNECTION's server."
  (unwind-protect
      (condition-case problem
          (let ((secret (with-local-quit (contexture-provider--secret place))))
            (cond ((null secret)
                   (contexture-provider--failed
                    (car entry)
                    (format "auth-source has no key for host %s; add this line to \
~/.authinfo.gpg: machine %s login %s password KEY"
                            (car place) (car place) (or (cadr place) "apikey"))))
                  ((jsonrpc-running-p connection)
                   (puthash place secret contexture-provider--secrets)
                   (contexture-provider--send connection (car entry) params secret))))
        ;; A file of keys that cannot be decrypted is one reason.
        (error (contexture-provider--failed (car entry) (error-message-string problem))))
    (setq contexture-provider--pending
          (remove (car entry) contexture-provider--pending))
    (unless contexture-provider--pending
      (contexture-provider--go-on))))

(defun contexture-provider--go-on ()
  "Call the functions that waited for keys, in order.
Report an error in one and go on with the others."
  (dolist (function (nreverse (cl-shiftf contexture-provider--waiting nil)))
    (condition-case problem
        (funcall function)
      (error (contexture--message "Contexture: %s" (contexture--problem-text problem))))))

(defun contexture-provider--secret (place)
  "Return a function that returns the key at PLACE, or nil if there is none.
If PLACE names no user, try \"apikey\" first, which other packages use."
  (require 'auth-source)
  (pcase-let* ((`(,host ,user) place)
               (search (lambda (&rest more)
                         (car (apply #'auth-source-search :host host :max 1
                                     :require '(:secret) more))))
               (found (if user (funcall search :user user)
                        (or (funcall search :user "apikey") (funcall search))))
               (secret (plist-get found :secret)))
    (cond ((functionp secret) secret)
          ((stringp secret) (lambda () secret)))))

(defun contexture-provider--when-ready (function)
  "Call FUNCTION when no key is being looked up, now if none is."
  (if contexture-provider--pending
      (push function contexture-provider--waiting)
    (funcall function)))

;;;; A command

;; The command asks for as little as it can: the kind, the address, the model,
;; from the list of the server, and the limit if nobody tells it.  The name comes
;; from the kind or the host, and the key from auth-source or the environment; it
;; is asked for if the server refuses to answer without.

;;;###autoload
(defun contexture-configure-provider (name settings &optional save)
  "Set up a model to talk to, as the provider NAME with SETTINGS.
Interactively, you are asked for the kind of server, its address, the model
and, if nobody tells it, the model's limit.  For a key you are asked only if
the server wants one that is not found.  With a prefix argument, you are
also asked for the name, the place of the key, further settings, and whether
to save.  This
adds SETTINGS to `contexture-providers'; with SAVE, as interactively
without a prefix argument, also for an Emacs started later."
  (interactive (contexture-provider--read current-prefix-arg))
  (let ((entry (cons name settings))
        (kept (contexture-provider--kept-text save)))
    (contexture-provider--params entry) ; this checks ENTRY
    ;; Let the key be looked up again.
    (unless (called-interactively-p 'any)
      (contexture-provider--look-up-again entry))
    (contexture-provider--forget-told name)
    (setf (alist-get name contexture-provider--awaited nil nil #'equal)
          (format "(model %s), %s" (plist-get settings :model) kept))
    ;; If a server runs, it is sent what is set.
    (setq contexture-providers
          (append (cl-remove name contexture-providers :key #'car :test #'equal)
                  (list entry)))
    (when save (customize-save-variable 'contexture-providers contexture-providers))
    (unless (contexture-running-p) (contexture-request-async 'ping))))

(defun contexture-provider--look-up-again (entry)
  "Forget the key of ENTRY, so that it is looked up again."
  (when-let* ((place (contexture-provider--place entry)))
    (require 'auth-source)
    (remhash place contexture-provider--secrets)
    (auth-source-forget+ :host (car place))))

(defun contexture-provider--kept-text (save)
  "Return a phrase that says whether a provider outlives Emacs, as SAVE asks."
  (require 'cus-edit)
  (cond ((null save) "for this Emacs only")
        ((custom-file t)
         (format "saved in %s for later" (contexture--abbreviate (custom-file t))))
        (t "not saved, since this Emacs read no init file")))

(defun contexture-provider--read (&optional more)
  "Ask for a provider; return a list of its name, its settings, and SAVE.
If MORE is non-nil, also ask for what is usually found."
  (let* ((kind (completing-read "Kind of provider: "
                                (mapcar #'car contexture-provider--kinds) nil t nil t))
         (usual (cdr (assoc kind contexture-provider--kinds)))
         (scripted (equal kind "scripted"))
         (url (and (not scripted)
                   (contexture-provider--read-text (format-prompt "Address" usual) usual)))
         (name (contexture-provider--name kind url))
         (name (if more (contexture-provider--read-text
                         (format-prompt "Name of the provider" name) name)
                 name))
         (settings
          (append (list :kind kind)
                  (if scripted (list :script (contexture-provider--read-script))
                    (and (not (equal url usual)) (list :base-url url)))
                  (cond ((or scripted (member kind contexture-provider--local)) nil)
                        (more (contexture-provider--read-key))
                        (t (contexture-provider--find-key kind url)))
                  (and more (not scripted) (contexture-provider--read-further)))))
    (list name
          (if scripted
              (append settings
                      (list :model (contexture-provider--read-text
                                    (format-prompt "Model" kind) kind)))
            (contexture-provider--read-model name settings))
          (or (not more)
              (contexture--y-or-n-p "Save this model for later? ")))))

(defun contexture-provider--read-further ()
  "Ask for further settings, until none is named; return them."
  (let (settings)
    (while (let ((name (completing-read (format-prompt "Further setting" "none")
                                        (mapcar #'car contexture-provider--further)
                                        nil nil nil t "")))
             (unless (string-blank-p name)
               (let ((kind (cdr (assoc name contexture-provider--further)))
                     (prompt (concat (capitalize name) ": ")))
                 (setq settings
                       (plist-put settings (intern (concat ":" name))
                                  (cond ((equal name "headers")
                                         (contexture-provider--read-headers))
                                        ((consp kind) (completing-read prompt kind nil t))
                                        (kind (read-number prompt))
                                        (t (read-string prompt nil t))))))
               t)))
    settings))

(defconst contexture-provider--header-name "\\`[-!#$%&'*+.^_`|~[:alnum:]]+\\'"
  "Regexp for the name of a header, as RFC 9110 has it (section 5.6.2, token).")

(defun contexture-provider--read-header-name ()
  "Ask for the name of a header until it is one, or is blank.  No history keeps it."
  (let (name)
    (while (not (or (string-blank-p (setq name (read-string (format-prompt "Header" "no more")
                                                            nil t)))
                    (string-match-p contexture-provider--header-name name)))
      (message "The name of a header has letters, digits and hyphens; its value is asked for next")
      (sit-for 1.5))
    name))

(defun contexture-provider--read-headers ()
  "Ask for headers, until none is named; return them.  No history keeps them."
  (let (headers name)
    (while (not (string-blank-p (setq name (contexture-provider--read-header-name))))
      (push (list :name name
                  (pcase (completing-read (format-prompt "Where is its value" "here")
                                          '("here" "environment variable" "command")
                                          nil t nil nil "here")
                    ("environment variable" :env)
                    ("command" :command)
                    (_ :value))
                  (read-string "Value, variable or command: " nil t))
            headers))
    (nreverse headers)))

(defun contexture-provider--name (kind url)
  "Return the name of a provider of KIND at URL, or nil for one without a server.
That is its KIND at the usual address, else its host with the port."
  (if (or (null url) (equal url (cdr (assoc kind contexture-provider--kinds)))) kind
    (require 'url-parse)
    (let* ((address (url-generic-parse-url url))
           (host (or (url-host address) ""))
           (port (url-portspec address)))
      (cond ((string-empty-p host) kind)
            (port (format "%s:%s" host port))
            (t host)))))

(defun contexture-provider--find-key (kind url)
  "Return settings that say where the key of the server of KIND at URL is.
Return nil if auth-source has none; the server then reads the usual variable
of the environment.  At another address than the usual one, only a key of
the user \"apikey\" counts: the host may have other passwords."
  (let* ((usual (equal url (cdr (assoc kind contexture-provider--kinds))))
         (source (list :auth-source (if usual t '(:user "apikey"))))
         (entry `("" :kind ,kind :base-url ,url ,@source))
         (place (contexture-provider--place entry)))
    (contexture-provider--look-up-again entry)
    (when-let* (((car place))
                (secret (with-demoted-errors "Contexture: %S"
                          (contexture-provider--secret place))))
      (puthash place secret contexture-provider--secrets)
      source)))

(defun contexture-provider--read-model (name settings)
  "Ask for a model of the provider NAME; return SETTINGS with what belongs to it.
The server of the provider is asked for its models, for a key if it wants
one, and for the limit of the model.  If the user quits, the provider is
as it was before in Contexture's server."
  (let ((kind (plist-get settings :kind)) (done nil))
    (unwind-protect
        (pcase-let* ((`(,settings ,models ,problem)
                      (contexture-provider--models name settings))
                     (model (contexture-provider--choose-model name models problem))
                     (settings (append (list :kind kind :model model) (cddr settings))))
          (setq settings
                (append settings
                        (cond ((member kind contexture-provider--local)
                               ;; Its default is often so small that it cuts the request.
                               (contexture-provider--read-limit "Context length in tokens: " 16384))
                              ((null problem)
                               (contexture-provider--missing-limit name settings)))))
          (setq done t)
          settings)
      (unless done (contexture-provider--restore name)))))

(defconst contexture-provider--no-model "(being chosen)"
  "Name of the model of a provider while the user chooses one.")

(defun contexture-provider--models (name settings)
  "Return (SETTINGS MODELS PROBLEM) of the provider NAME with SETTINGS.
MODELS are those of its server, and PROBLEM, or nil, says why there are none.
If the server wants a key and none is known, ask for it."
  (pcase-let ((`(,result ,why ,kind)
               (contexture-provider--ask-server name settings contexture-provider--no-model)))
    (if-let* (((memq kind '(:authentication :unconfigured)))
              ((not (contexture-provider--key-p settings)))
              (key (contexture-provider--enter-key settings)))
        (contexture-provider--models name (append settings key))
      (list settings (contexture--model-names result) why))))

(defun contexture-provider--key-p (settings)
  "Return non-nil if SETTINGS say where the key is."
  (or (plist-get settings :auth-source) (plist-get settings :api-key-env)
      (plist-get settings :api-key-command)))

(defun contexture-provider--ask-server (name settings model)
  "Ask the provider NAME with SETTINGS and MODEL for its models and its limit.
Return (RESULT nil nil), or (nil WHY KIND) if it failed."
  (let* ((entry (cons name (plist-put (copy-sequence settings) :model model)))
         (place (contexture-provider--place entry))
         (secret (and place (or (gethash place contexture-provider--secrets)
                                (contexture-provider--secret place)))))
    (message "Asking %s for its models..." (contexture--visible name))
    (condition-case problem
        (progn
          (contexture-provider--forget-told name)
          (contexture-request 'ping)    ; then there is a server
          (let ((contexture--own-call t))
            (contexture-request 'configure-provider
                                (append (contexture-provider--params entry)
                                        (and secret (list :api-key (funcall secret))))))
          (prog1 (list (contexture-request 'list-providers (list :models t :provider name)) nil nil)
            (message nil)))
      (contexture-error
       (list nil (string-replace (format " with the model %S" contexture-provider--no-model)
                                     "" (contexture--problem-text problem))
             (plist-get (nth 3 problem) :kind))))))

(defun contexture-provider--enter-key (settings)
  "Ask for the key of the server that SETTINGS name, and let auth-source keep it.
Return the setting that finds it there, or nil if none was entered."
  (require 'auth-source)
  (let* ((source '(:auth-source (:user "apikey")))
         (place (contexture-provider--place (cons "" (append settings source))))
         (auth-source-creation-prompts '((secret . "Key for %h: ")))
         (found (car (auth-source-search :host (car place) :user "apikey" :max 1
                                         :require '(:secret) :create t)))
         (secret (plist-get found :secret)))
    (when secret
      (puthash place (if (functionp secret) secret (lambda () secret))
               contexture-provider--secrets)
      (when (functionp (plist-get found :save-function))
        (funcall (plist-get found :save-function)))
      source)))

(defun contexture-provider--choose-model (name models problem)
  "Ask for one of MODELS of the provider NAME, or for any if PROBLEM says why none."
  (let* ((before (plist-get (cdr (assoc name contexture-providers)) :model))
         (default (cond ((member before models) before)
                        ((null (cdr models)) (or (car models) before))))
         (model (contexture--trim
                 (completing-read
                  (format-prompt (if problem (contexture--format "%s; model" problem) "Model")
                                 (contexture--visible default))
                  (contexture--table models 'contexture-model
                                     (lambda (it)
                                       (contexture--model-about (car (member it models)))))
                  nil nil nil t default))))
    (if (string-empty-p model) (user-error "A provider needs a model") model)))

(defun contexture-provider--missing-limit (name settings)
  "Ask for the limit of the model in SETTINGS, of the provider NAME, if unknown.
Return it as settings, or nil."
  (let* ((model (plist-get settings :model))
         (result (car (contexture-provider--ask-server name settings model))))
    (when (eq (plist-get result :limit-from) :default)
      (contexture-provider--read-limit
       (contexture--format "Limit of %s in tokens, which its server does not tell: " model)
       (plist-get result :limit)))))

(defun contexture-provider--read-limit (prompt default)
  "Ask for a number of tokens with PROMPT and DEFAULT; return it as settings."
  (list :context (truncate (read-number prompt default))))

(defun contexture-provider--restore (name)
  "Let the server know of the provider NAME what it knew before it was asked about."
  (when (contexture-running-p)
    (if-let* ((entry (assoc name contexture-providers)))
        (contexture-provider--tell contexture--connection entry)
      (contexture-provider--untell name))))

(defun contexture-provider--read-text (prompt default)
  "Ask with PROMPT; return the trimmed text, or DEFAULT.
An address or a command may hold a secret, so no history keeps the text."
  (let ((text (contexture--trim (read-string prompt nil t default))))
    (if (string-empty-p text) default text)))

(defun contexture-provider--read-script ()
  "Ask for the file that a scripted provider plays; return its full name."
  (let ((file (expand-file-name (read-file-name "File with the answers: " nil nil t))))
    (unless (file-regular-p file)
      (contexture--user-error "%s is not a regular file" (contexture--abbreviate file)))
    file))

(defun contexture-provider--read-key ()
  "Ask for the place of a provider's key; return it as settings.
Return nil if the provider needs no key.  No history keeps the answer, which
may be the key by mistake."
  (pcase (completing-read (format-prompt "Where is the key" "auth-source")
                          '("auth-source" "environment variable" "command" "none needed")
                          nil t nil nil "auth-source")
    ("auth-source" '(:auth-source t))
    ("environment variable" (list :api-key-env (read-string "Variable: " nil t)))
    ("command" (list :api-key-command (read-string "Command that prints it: " nil t)))))

;;; Check that models answer

;; Asks each provider that the server knows for its models, which shows whether it
;; is reachable and accepts its key.  It also lists those entries of
;; `contexture-providers' that could not be sent to the server.  No key is
;; shown.

(defun contexture-doctor--check-models (then)
  "Check all models, and call THEN with the findings."
  (contexture-doctor--ask then "Models are" 'list-providers
                          '(warn "The server does not list its models")
                          (lambda (providers)
                            (contexture-doctor--ask-models providers then))))

(defun contexture-doctor--ask (then subject method refused function)
  "Call METHOD of the server, and then FUNCTION with its result, a list.
If the call fails, call THEN with the finding REFUSED, extended by the
reason.  If Emacs is not connected, or another server is to be checked, call
THEN with a note about SUBJECT, a phrase such as \"Models are\"."
  (if (or (not (contexture-running-p)) (bound-and-true-p contexture-doctor--address))
      (funcall then `((note ,(concat subject " checked once Emacs is connected"))))
    (contexture--probe-call
     method nil contexture-doctor-timeout
     (lambda (outcome value)
       (if (eq outcome 'answered)
           (funcall function value)
         (funcall then `((,@refused ,(and (stringp value) value)))))))))

(defun contexture-doctor--ask-models (providers then)
  "Ask each of PROVIDERS for its models, and call THEN with the findings."
  (let* ((left (length providers))
         (found (make-vector left nil))
         (end (lambda ()
                (funcall then `(,@(contexture-doctor--untold)
                                ,@(append found nil)
                                ,@(unless providers
                                    (list (contexture-doctor--no-provider))))))))
    (if (= left 0) (funcall end)
      (dotimes (place left)
        (let ((provider (nth place providers)))
          (contexture--probe-call
           'list-providers (list :models t :provider (plist-get provider :name))
           contexture-doctor-timeout
           (lambda (outcome value)
             (aset found place
                   (contexture-doctor--judge-provider provider outcome value))
             (when (= 0 (cl-decf left)) (funcall end)))))))))

(defun contexture-doctor--judge-provider (provider outcome value)
  "Return the finding on PROVIDER, whose check ended with OUTCOME and VALUE."
  (let* ((model (plist-get provider :model))
         (settings (plist-get provider :settings))
         (said (format "%s: %s%s%s" (plist-get provider :name) model
                       (if (plist-get provider :default) ", the default" "")
                       (if settings (concat ", with " settings) "")))
         (models (and (eq outcome 'answered) (contexture--model-names value))))
    (cond ((eq outcome 'silent)
           (list 'warn (format "%s; the provider does not answer" said)
                 (format "Check that you can reach %s."
                         (or (plist-get provider :base-url) "its address"))))
          ((eq outcome 'refused) (list 'warn said value))
          ((or (null models) (cl-some (lambda (it) (string-prefix-p model it)) models))
           (list 'ok said))
          (t (list 'warn (format "%s; the provider does not list this model" said)
                   (format "It lists %s." (string-join (seq-take models 8) ", ")))))))

(defun contexture-doctor--untold ()
  "Return findings on the `contexture-providers' that the server lacks."
  (cl-loop for (name . problem) in contexture-provider--problems
           when (assoc name contexture-providers)
           collect `(fail ,(format "%s: the server does not know it" name) ,problem)))

(defun contexture-doctor--no-provider ()
  "Return the finding that no model is set up."
  (list 'note "No model is set up; you need one only for conversations"
        "Set one up here, or with a [[providers]] table in the server's configuration file."
        (cons "Set up a model"
              (lambda () (call-interactively #'contexture-configure-provider)))))

(defun contexture-doctor--judge-state (info)
  "Return findings from INFO on writing the state and on backups."
  `(,@(when-let* ((why (plist-get info :read-only)))
        `((fail ,(format "Changes cannot be saved now: %s" why)
                "Make room on the disk, or make the state folder writable; then repeat
the change.  You need not restart anything.")))
    ,@(when-let* ((backup (plist-get info :backup)))
        `((ok ,(format "The last backup is from %s: %s"
                       (format-time-string "%F %R" (plist-get backup :at))
                       (contexture--abbreviate (plist-get backup :path))))))))

;;; Trust the templates of a project

;; Somebody else may have written a project, and its templates determine
;; what a model is told.  So they are used only once you trust the project:
;; when a conversation first needs one, you are asked, once in each Emacs,
;; and can look at them first.  The server keeps the answer;
;; `contexture-distrust-project' revokes it.

(defconst contexture-trust-buffer "*contexture: texts for models*"
  "Name of the buffer that shows a project's templates.")

(defconst contexture-trust--longest 20000
  "Maximum number of bytes of a template to show.")

(defvar contexture-trust--asked nil
  "Projects about which the user was asked in this Emacs.")

;;;; Commands

(defun contexture-trust--project-here ()
  "Return the project of this conversation or buffer, or its folder."
  (directory-file-name
   (expand-file-name
    (or (contexture--outside-folder
         (plist-get (bound-and-true-p contexture-conversation--session) :project))
        (contexture--project-root)
        default-directory))))

;;;###autoload
(defun contexture-trust-project (project)
  "Trust PROJECT, a folder, so that its own texts for models are used.
They are the files in its `.contexture/templates', and determine what a
model is told.  Trust is tied to the folder and its Git remote, if it has
one: trust the project again if one of the two changes."
  (interactive
   (list (read-directory-name "Trust the texts for models of project: "
                              (contexture-trust--project-here) nil t)))
  (contexture-trust--trust project #'ignore))

;;;###autoload
(defun contexture-distrust-project (project)
  "Stop trusting PROJECT, a folder, so that its own texts are not used."
  (interactive
   (let ((known (contexture--pluck :project
                                   (contexture-request 'trust-project))))
     (unless known (user-error "No project is trusted"))
     (list (completing-read "Stop trusting: "
                            (mapcar #'contexture--visible-candidate known) nil t nil nil
                            (car (member (contexture-trust--project-here) known))))))
  (let ((project (contexture--inertly (directory-file-name (expand-file-name project)))))
    (setq contexture-trust--asked (delete project contexture-trust--asked))
    (contexture-request-async
     'trust-project (list :project project :trusted :false)
     :success (lambda (answer)
                (contexture--message (if (plist-get answer :was-trusted)
                             "%s is no longer trusted"
                           "%s was not trusted")
                         (contexture--abbreviate project))
                (contexture-trust--changed project)))))

(defun contexture-trust--changed (project)
  "Update conversations after PROJECT became trusted or untrusted."
  (when (featurep 'contexture-conversation)
    (contexture-conversation--trust-changed project)))

(defun contexture-trust--trust (project then)
  "Trust PROJECT, and call THEN with non-nil on success, else nil."
  (let ((project (directory-file-name (expand-file-name project))))
    (contexture-request-async
     'trust-project (list :project project)
     :success (lambda (answer)
                (let ((templates (plist-get answer :templates)))
                  (contexture--message "%s is trusted; %s" (contexture--abbreviate project)
                           (if templates
                               (format (if (cdr templates)
                                           "its texts %s are used"
                                         "its text %s is used")
                                       (string-join templates ", "))
                             "it has no texts for models yet")))
                (contexture-trust--changed project)
                (funcall then t))
     :error (lambda (problem)
              (contexture-show-error problem)
              (funcall then nil)))))

;;;; Asking

(defun contexture-trust--ask (project templates then)
  "Ask whether to trust PROJECT, whose templates are the files TEMPLATES.
Ask only once in this Emacs.  Call THEN with non-nil once the project is
trusted, or with nil if it is not."
  (if (member project contexture-trust--asked) (funcall then nil)
    (push project contexture-trust--asked)
    (if (contexture-trust--decide project templates)
        (contexture-trust--trust project then)
      (contexture--message "Not trusted; to trust it later, use %s"
               (substitute-command-keys "\\[contexture-trust-project]"))
      (funcall then nil))))

(defun contexture-trust--decide (project templates)
  "Ask whether to trust PROJECT, and return non-nil if the user does.
TEMPLATES are the files of its templates."
  ;; This is asked in the echo area, so characters say that it goes from left to right.
  (let ((prompt (format "\u202d%s has its own texts, which determine what a model is told.  \
Trust them? \u202c" (contexture--visible (contexture--abbreviate project))))
        answer)
    (unless executing-kbd-macro (discard-input)) ; what was typed before is no answer
    (save-window-excursion
      (while (eq ?s (setq answer (car (read-multiple-choice
                                       prompt '((?y "yes") (?n "no")
                                                (?s "show them"))))))
        (contexture-trust--show templates)))
    (eq answer ?y)))

(defun contexture-trust--show (templates)
  "Show the text of the files TEMPLATES, without running any code in them."
  (with-current-buffer (get-buffer-create contexture-trust-buffer)
    (let ((inhibit-read-only t))
      (special-mode)
      (erase-buffer)
      (dolist (file templates)
        (insert (propertize (format "%s\n" (contexture--visible
                                            (if (contexture--outside-file file)
                                                (file-truename file)
                                              file)))
                            'face 'bold))
        (if (not (and (contexture--outside-file file) (file-regular-p file)))
            (insert "This is not a regular file.\n")
          (goto-char (+ (point)
                        (cadr (let ((coding-system-for-read 'utf-8-unix)) ; as the server reads it
                                (contexture--insert-file file contexture-trust--longest)))))
          (unless (bolp) (insert "\n"))
          (let ((size (file-attribute-size (file-attributes file))))
            (when (> size contexture-trust--longest)
              (insert (propertize (format "%d of %d bytes are not shown; visit the file.\n"
                                          (- size contexture-trust--longest) size)
                                  'face 'warning)))))
        (insert "\n"))
      (contexture--show-hidden)
      (contexture--show-in-order)
      (goto-char (point-min))
      (display-buffer (current-buffer)))))

;;;; The doctor

(defun contexture-doctor--check-trust (then)
  "Call THEN with the findings on trusted projects."
  (contexture-doctor--ask
   then "Trust is" 'trust-project
   '(note "The server does not list trusted projects")
   (lambda (projects)
     (funcall then
              (if projects (mapcar #'contexture-trust--finding projects)
                '((ok "No project is trusted; texts for models of projects \
are not used")))))))

(defun contexture-trust--finding (trusted)
  "Return the finding on TRUSTED, a trusted project of the server."
  (let* ((project (plist-get trusted :project))
         (name (contexture--visible
                (format "%s%s" (contexture--abbreviate project)
                        (if-let* ((remote (plist-get trusted :remote)))
                            (format " (%s)" remote) ""))))
         (revoke (cons "Stop trusting it"
                       (lambda () (contexture-distrust-project project)))))
    (pcase (contexture--name (plist-get trusted :standing))
      ("same"
       (list 'ok (format "%s is trusted; its texts for models are used" name) nil revoke))
      ("other"
       (list 'note (format "%s was trusted, but its Git remote has changed or \
cannot be read; to trust it as it is, use M-x contexture-trust-project" name)
             nil revoke))
      (_ (list 'note (format "%s was trusted, but the folder is gone" name) nil revoke)))))

;;; Find what is wrong with the set-up

;; `contexture-doctor' checks everything that the commands need and says
;; what is wrong and what to do.  The checks run one after the other in
;; the background, each with a time limit; so the program's own check,
;; which holds the state folder for a moment, never hinders a server.
;;
;; A finding is a list (STATUS TEXT ADVICE . ACTIONS).  STATUS is one of `ok',
;; `note', `warn' and `fail', ADVICE is what to do, or nil, and ACTIONS is an
;; alist of buttons and functions.  The checks change nothing, though one
;; may start a server; only buttons change something.

(defcustom contexture-doctor-timeout 3
  "Number of seconds after which `contexture-doctor' gives up on a check."
  :type 'number
  :group 'contexture)

(defconst contexture-doctor-buffer "*contexture: doctor*"
  "Name of the buffer that shows what `contexture-doctor' found.")

(defconst contexture-doctor--checks
  '(("Emacs" . contexture-doctor--check-emacs)
    ("The program" . contexture-doctor--check-program)
    ("The program's own check" . contexture-doctor--check-itself)
    ("The state" . contexture-doctor--check-state)
    ("The server" . contexture-doctor--check-server)
    ("Models" . contexture-doctor--check-models)
    ("Trust" . contexture-doctor--check-trust)
    ("Your buffer" . contexture-doctor--check-buffer)
    ("Keys" . contexture-doctor--check-keys)
    ("gptel" . contexture-doctor--check-gptel))
  "The checks in order, as pairs of a heading and a function.
The function is called in the doctor's buffer with a callback, which it
calls with a list of findings, at once or later.")

(defvar-local contexture-doctor--origin nil
  "Buffer in which `contexture-doctor' was called.")

(defvar-local contexture-doctor--address nil
  "Address of the server to check, or nil for the usual one.")

(defvar-local contexture-doctor--results nil
  "Pairs of a heading and findings, the newest first.")

(defvar-local contexture-doctor--waiting nil
  "Checks that remain, the running one first.")

(defvar-local contexture-doctor--run 0
  "Number of this run; results of earlier runs are dropped.")

(defvar contexture-doctor-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "i" #'contexture-info)
    (define-key map (kbd "TAB") #'forward-button)
    (define-key map (kbd "<backtab>") #'backward-button)
    map)
  "Keymap of `contexture-doctor-mode'.")

(define-derived-mode contexture-doctor-mode special-mode "Contexture-Doctor"
  "Major mode for the findings of `contexture-doctor'.
\\<contexture-doctor-mode-map>\\[revert-buffer] checks again, and \
\\[contexture-info] shows what is connected.

See Info node `(contexture)Troubleshooting'.

\\{contexture-doctor-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local word-wrap t
              truncate-lines nil
              revert-buffer-function #'contexture-doctor--again)
  (add-hook 'kill-buffer-hook #'contexture--end-probes nil t))

;;;###autoload
(defun contexture-doctor (&optional address)
  "Check what Contexture needs, and say what is wrong and what to do.
With a prefix argument, check the server at ADDRESS, the path of a
socket or HOST:PORT, instead of the one that Emacs would use."
  (interactive
   (list (and current-prefix-arg
              (read-string "Check the server (socket path or HOST:PORT): "
                           (contexture--running-socket)
                           'contexture-connect-history))))
  (let ((origin (current-buffer)))
    (pop-to-buffer (get-buffer-create contexture-doctor-buffer))
    (unless (derived-mode-p 'contexture-doctor-mode)
      (contexture-doctor-mode))
    (unless (string-prefix-p "*contexture: " (buffer-name origin))
      (setq contexture-doctor--origin origin))
    (setq contexture-doctor--address address)
    (goto-char (point-min))
    (contexture-doctor--again)))

;;;; Running the checks

(defun contexture-doctor--again (&rest _)
  "Run all checks, from the first."
  (contexture--end-probes)
  (setq contexture-doctor--results nil
        contexture-doctor--waiting contexture-doctor--checks)
  (cl-incf contexture-doctor--run)
  (contexture-doctor--next))

(defun contexture-doctor--next ()
  "Run the next check, if there is one, and show the findings so far."
  (contexture-doctor--show)
  (pcase (car contexture-doctor--waiting)
    ('nil (contexture--message "Contexture: %s" (contexture-doctor--summary)))
    (`(,heading . ,check)
     (let ((buffer (current-buffer))
           (run contexture-doctor--run))
       (funcall check (lambda (findings)
                        (contexture--with-live-buffer buffer
                          (when (eq run contexture-doctor--run)
                            (pop contexture-doctor--waiting)
                            (push (cons heading findings) contexture-doctor--results)
                            (contexture-doctor--next)))))))))

(defun contexture-doctor--findings ()
  "Return all findings so far."
  (apply #'append (mapcar #'cdr (reverse contexture-doctor--results))))

(defun contexture-doctor--summary ()
  "Return a phrase for the number of problems."
  (let ((counts (cl-loop for (status . noun) in '((fail . "problem") (warn . "warning"))
                         for number = (cl-count status (contexture-doctor--findings) :key #'car)
                         when (> number 0) collect (contexture--count number noun))))
    (if counts (string-join counts ", ") "everything is in order")))

;;;; Showing

(defun contexture-doctor--show ()
  "Show the findings so far, those that need action first."
  (let ((inhibit-read-only t)
        (line (line-number-at-pos))
        (bad (lambda (finding) (memq (car finding) '(fail warn)))))
    (erase-buffer)
    (insert (propertize "Contexture's set-up" 'face 'bold)
            (if contexture-doctor--waiting
                (format ": checking %s..."
                        (downcase (caar contexture-doctor--waiting)))
              (concat ": " (contexture-doctor--summary)))
            "\n")
    (contexture-doctor--insert-section
     "What to do" (cl-remove-if-not bad (contexture-doctor--findings)))
    (pcase-dolist (`(,heading . ,findings) (reverse contexture-doctor--results))
      (contexture-doctor--insert-section heading (cl-remove-if bad findings)))
    (insert (substitute-command-keys
             "\n\\<contexture-doctor-mode-map>\\[revert-buffer] checks again, \
\\[contexture-info] shows what is connected, \\[quit-window] leaves\n"))
    (goto-char (point-min))
    (forward-line (1- line))))

(defun contexture-doctor--insert-section (heading findings)
  "Insert HEADING and FINDINGS, if there are any."
  (when findings
    (insert "\n" (propertize heading 'face 'bold) "\n")
    (mapc #'contexture-doctor--insert findings)))

(defun contexture-doctor--insert (finding)
  "Insert FINDING, its advice and its buttons."
  (pcase-let ((`(,status ,text . ,more) finding))
    (insert (propertize
             (format "  %s  %s\n"
                     (propertize (format "%-4s" status)
                                 'face (pcase status
                                         ('ok 'success)
                                         ('note 'shadow)
                                         ('warn 'warning)
                                         (_ 'error)))
                     (contexture--visible text))
             'wrap-prefix (make-string 8 ?\s)))
    (dolist (line (and (car more) (split-string (car more) "\n")))
      (insert (propertize (contexture--format "        %s\n" line)
                          'wrap-prefix (make-string 8 ?\s))))
    (pcase-dolist (`(,label . ,function) (cdr more))
      (insert "        ")
      (insert-text-button (format "[%s]" label) 'action (lambda (_) (funcall function))
                          'follow-link t)
      (insert "\n"))))

;;;; The checks

(defun contexture-doctor--check-emacs (then)
  "Call THEN with the findings on Emacs."
  (funcall then
           (list (list 'ok (format "Emacs %s, the package %s in %s" emacs-version
                                   contexture--version
                                   (contexture--abbreviate contexture--directory))))))

(defun contexture-doctor--check-program (then)
  "Check that the program exists and has the right version; then call THEN."
  (let ((command (contexture-doctor--command)))
    (if (null command)
        (funcall then (list (contexture-doctor--no-program)))
      (contexture--probe-program
       (append command '("--version")) contexture-doctor-timeout
       (lambda (status output)
         (funcall then (list (contexture-doctor--judge-program
                              (contexture--abbreviate (car command))
                              status output))))))))

(defun contexture-doctor--command ()
  "Return the server's program with its own arguments, or nil if it is missing.
These are the arguments in `contexture-server-command', and none of
`contexture-server-args'."
  (condition-case nil
      (let ((command (contexture--server-command)))
        (seq-take command (max 1 (length (ensure-list contexture-server-command)))))
    (user-error nil)))

(defun contexture-doctor--no-program ()
  "Return the finding that the server's program is missing."
  (let* ((customize (cons "Customize contexture-server-command"
                          (lambda () (customize-variable 'contexture-server-command))))
         (name (car (ensure-list contexture-server-command)))
         (shown (and name (contexture--abbreviate name))))
    (cond ((null name)
           (list 'fail "The server's program is not installed"
                 (format "Install it: M-x contexture-install-server, or make install in the sources.
If it is installed already, set contexture-server-command to its file name.
Emacs looked in the folders of exec-path, and here:\n%s"
                         (mapconcat (lambda (place)
                                      (concat "  " (contexture--abbreviate place)))
                                    (contexture--server-in
                                     (append (contexture--places-beside)
                                             (list (contexture--installed-server))
                                             contexture--places-at-home))
                                    "\n"))
                 (cons "Install it" #'contexture-install-server)
                 customize))
          ((and (file-exists-p name) (not (file-directory-p name)))
           (list 'fail (format "%s is not executable" shown)
                 (format "Make it executable: chmod u+x %s" (shell-quote-argument name))))
          (t
           (list 'fail (format "The program %s does not exist" shown)
                 "contexture-server-command names it.
Correct that option, or set it to nil so that Emacs finds the program."
                 customize)))))

(defun contexture-doctor--judge-program (program status output)
  "Return the finding on PROGRAM, which ended with STATUS and printed OUTPUT."
  (cond ((eq status 'silent)
         (list 'fail (format "%s does not answer" program)
               "It should print its version and end.  Check that it is the right program."))
        ((and (eq status 0)
              (string-match "\\`contexture \\([0-9]+\\(?:\\.[0-9]+\\)*\\)" output))
         (contexture-doctor--judge-version (match-string 1 output) program
                                           "Install it again: \
M-x contexture-install-server, or make install in the sources of this package."))
        (t
         (list 'fail (format "%s is not Contexture's server; asked for its version, \
it printed: %s"
                             program (contexture-doctor--first-line output status))
               "Set contexture-server-command to the right program, or to nil so that \
Emacs finds it."))))

(defun contexture-doctor--first-line (output status)
  "Return the first line of OUTPUT, or a phrase for STATUS if it is empty."
  (let ((line (car (split-string (contexture--trim output) "\n"))))
    (if (string-empty-p line)
        (if (stringp status) status (format "nothing (it ended with %s)" status))
      (truncate-string-to-width line 100 nil nil t))))

(defun contexture-doctor--judge-version (version what advice)
  "Return a finding on VERSION of WHAT; ADVICE is for an old version."
  (let ((said (format "%s is version %s" what version))
        (package (format " (%s)" contexture--version)))
    (cond ((equal version contexture--version)
           (list 'ok said))
          ((version< version contexture--version)
           (list 'fail (concat said ", older than the package" package) advice))
          (t
           (list 'warn (concat said ", newer than the package" package)
                 "Update the Emacs package to the same version.")))))

(defun contexture-doctor--check-itself (then)
  "Call THEN with the findings of `contexture doctor'."
  (let ((command (contexture-doctor--command)))
    (if (or (null command) (contexture-doctor--failed-p))
        (funcall then nil)
      (contexture--probe-program
       (append command '("doctor" "--json") (contexture-doctor--own-arguments))
       ;; It runs what agents start, for at most 5 s.
       (+ contexture-doctor-timeout 5)
       (lambda (status output)
         (funcall then (contexture-doctor--judge-itself status output)))))))

(defun contexture-doctor--failed-p ()
  "Return non-nil if a check has failed already."
  (assq 'fail (contexture-doctor--findings)))

(defun contexture-doctor--own-arguments ()
  "Return `contexture-server-args' without those that only `serve' takes."
  (let ((left contexture-server-args) result)
    (while left
      (let ((argument (pop left)))
        (cond ((member argument '("--unix" "--tcp" "--http"))
               (unless (string-prefix-p "-" (or (car left) "-")) (pop left)))
              ((string-match-p "\\`--\\(?:unix\\|tcp\\|http\\)=" argument))
              (t (push argument result)))))
    (nreverse result)))

(defun contexture-doctor--judge-itself (status output)
  "Return findings from OUTPUT of `contexture doctor', which ended with STATUS."
  (or (contexture-doctor--reported output)
      (when (eq status 'silent)
        (list (list 'warn (format "`contexture doctor' does not answer within %s s"
                                  (+ contexture-doctor-timeout 5))
                    "Try again when the machine is less busy, or set contexture-doctor-timeout.")))
      (list (list 'fail (format "`contexture doctor' could not check: %s"
                                (contexture-doctor--first-line output status))
                  "Check contexture-server-args."
                  (cons "Customize contexture-server-args"
                        (lambda () (customize-variable 'contexture-server-args)))))))

(defun contexture-doctor--reported (output)
  "Return findings from OUTPUT, a report in JSON, or nil if it is none."
  (let* ((json-object-type 'plist)
         (json-array-type 'list)
         (json-false nil)
         (report (ignore-errors (json-read-from-string output)))
         (server (plist-get report :server)))
    (mapcar (lambda (finding)
              (list (if (plist-get finding :ok) 'ok 'fail)
                    (contexture-doctor--readable (plist-get finding :text))))
            (append (plist-get report :findings)
                    ;; A later check here looks more closely at a server that is well.
                    (and server (not (plist-get server :ok)) (list server))))))

(defun contexture-doctor--readable (text)
  "Return TEXT from the program with its sizes and file names made readable."
  (let ((sized (replace-regexp-in-string
                "\\b[0-9]+ bytes\\b"
                (lambda (size)
                  (file-size-human-readable (string-to-number size) 'si " " "B"))
                text t t))
        (home (directory-file-name (expand-file-name "~"))))
    ;; The name of the home folder may have spaces, which end no name then.
    (if (equal home "/") sized
      (replace-regexp-in-string
       (concat "\\(\\`\\|[ (`]\\)" (regexp-quote home) "\\([/ ,;)]\\|\\'\\)")
       "\\1~\\2" sized t))))

;;;; The state folder

(defun contexture-doctor--check-state (then)
  "Check that the state folder is usable and private; then call THEN."
  ;; The state folder of a server that was started elsewhere is unknown.
  (funcall then
           (unless (keywordp (car (contexture-doctor--target)))
             (list (contexture-doctor--judge-folder
                    (contexture-doctor--state-folder))))))

(defun contexture-doctor--target ()
  "Return the target of the server to check, or nil if there is none.
It is (:unix FILE), (:tcp HOST PORT), or a command that starts the server."
  (cond (contexture-doctor--address
         (contexture--parse-address contexture-doctor--address))
        (contexture--connection (oref contexture--connection target))
        (t (ignore-errors (contexture--server-command)))))

(defun contexture-doctor--state-folder ()
  "Return the folder in which the server would keep its state.
Return nil if it would save nothing."
  (let ((args contexture-server-args))
    (cond ((member "--ephemeral" args) nil)
          ((cadr (member "--state" args)))
          ((when-let* ((argument (cl-find "--state=" args :test #'string-prefix-p)))
             (string-remove-prefix "--state=" argument)))
          ((getenv "CONTEXTURE_STATE"))
          (t (contexture--usual-state-folder)))))

(defun contexture-doctor--judge-folder (folder)
  "Return the finding on FOLDER, the state folder."
  (let* ((attributes (and folder (file-attributes folder)))
         (shown (and folder (contexture--abbreviate folder)))
         (quoted (and folder (shell-quote-argument (expand-file-name folder)))))
    (cond ((null folder)
           (list 'warn "Nothing is saved: contexture-server-args has --ephemeral"))
          ((null attributes)
           (list 'ok (format "%s will be created" shown)))
          ((not (file-directory-p folder))
           (list 'fail (format "%s is not a folder" shown)
                 "Move it away, or name another folder with --state in contexture-server-args."))
          ((/= (file-attribute-user-id attributes) (user-uid))
           (list 'fail (format "%s belongs to another user" shown)
                 (format "Make it yours: sudo chown -R %s %s" (user-login-name) quoted)))
          ((not (and (file-accessible-directory-p folder) (file-writable-p folder)))
           (list 'fail (format "You have no access to %s" shown)
                 (format "Allow it: chmod u+rwx %s" quoted)))
          ((/= 0 (logand #o077 (file-modes folder)))
           (list 'warn (format "%s is open to other users" shown)
                 (format "Close it: chmod 700 %s" quoted)))
          (t (list 'ok (format "%s is yours alone" shown))))))

;;;; The server

(defun contexture-doctor--check-server (then)
  "Check that the server answers; then call THEN."
  (let* ((target (contexture-doctor--target))
         (wrong (and (eq (car target) :unix)
                     (contexture-doctor--judge-socket (cadr target))))
         (judge (lambda (outcome value)
                  (funcall then (contexture-doctor--judge-server
                                 target outcome value)))))
    (cond ((and (contexture-running-p) (not contexture-doctor--address))
           (contexture--probe-call 'initialize nil contexture-doctor-timeout judge))
          (wrong (funcall then (list wrong)))
          ((or (null target)
               (and (not (keywordp (car target))) (contexture-doctor--failed-p)))
           (funcall then nil))
          (t (contexture--probe-server target contexture-doctor-timeout judge)))))

(defun contexture-doctor--judge-socket (path)
  "Return a finding if no server is reachable at the socket PATH, else nil."
  (let ((attributes (file-attributes path))
        (shown (contexture--abbreviate path)))
    (cond ((null attributes)
           (list 'fail (format "The socket %s does not exist" shown)
                 (format "Start a server there: contexture serve --unix %s
Or let Emacs start one of its own: M-x contexture-disconnect" path)))
          ((not (string-prefix-p "s" (file-attribute-modes attributes)))
           (list 'fail (format "%s is not a socket" shown)
                 "Give the path that the server was started with (--unix)."))
          ((not (and (file-readable-p path) (file-writable-p path)))
           (list 'fail (format "You have no access to the socket %s" shown)
                 "A server accepts only the user who started it.")))))

(defun contexture-doctor--judge-server (target outcome value)
  "Return findings on the server at TARGET, whose check ended with OUTCOME.
OUTCOME and VALUE are as for `contexture--probe-server'."
  (pcase outcome
    ('answered (contexture-doctor--judge-answer value))
    ('silent (list (contexture-doctor--silent target)))
    ('stranger
     (list (list 'fail (format "The program that listens at %s is not Contexture's \
server; it said: %s"
                               (contexture--target-name target)
                               (truncate-string-to-width value 60 nil nil t))
                 "Connect to the right address: M-x contexture-connect")))
    (_ (list (contexture-doctor--refused target value)))))

(defun contexture-doctor--judge-answer (info)
  "Return findings on a server whose `initialize' is INFO."
  `(,(contexture-doctor--judge-version
      (or (plist-get info :version) "0") "It answers; it"
      "End it, so that the new one starts: M-x contexture-disconnect
in each Emacs that uses it.")
    ,@(mapcar (lambda (notice) (list 'warn (contexture-doctor--readable notice)))
              (plist-get info :notices))
    ,@(contexture-doctor--judge-state info)
    ,(list 'note (cond (contexture-doctor--address
                        "This is the server that you named; M-x contexture-connect connects to it")
                       ((contexture-running-p) "This Emacs is connected to it")
                       (t "This Emacs is not connected; the first command connects it")))))

(defun contexture-doctor--silent (target)
  "Return the finding that the server at TARGET does not answer."
  (let* ((pid (contexture-doctor--pid target))
         (stopped (and pid (equal "T" (alist-get 'state (process-attributes pid))))))
    `(fail
      ,(if stopped
           (format "The server (process %d) is stopped" pid)
         (format "The server%s does not answer within %s s"
                 (if pid (format " (process %d)" pid) "")
                 contexture-doctor-timeout))
      ,(format "%s
Emacs keeps what you add and sends it when the server answers.  Everything
the server acknowledged is saved, so you may end it: the next command starts
another one.%s"
               (if stopped (format "Resume it: kill -CONT %d" pid)
                 "It may be busy: wait and check again.")
               (if pid (format "\nEnd it: kill -KILL %d" pid) ""))
      ,@(when stopped
          (list (cons (format "Resume process %d" pid)
                      (lambda () (signal-process pid 'SIGCONT))))))))

(defun contexture-doctor--pid (target)
  "Return the process id of the server at TARGET, or nil.
It comes from the server's answer, else from its note in the state folder."
  (or (and contexture--connection
           (not contexture-doctor--address)
           (plist-get (oref contexture--connection info) :pid))
      (when-let* (((not (keywordp (car target))))
                  (folder (contexture-doctor--state-folder)))
        (car (contexture--server-note folder)))))

(defun contexture-doctor--refused (target reason)
  "Return the finding that the server at TARGET cannot be reached, for REASON."
  (let ((text (format "Cannot reach %s: %s" (contexture--target-name target) reason)))
    (pcase target
      (`(:unix ,path)
       (list 'fail text
             (format "The server that created this socket has ended.
Start one again: contexture serve --unix %s
Or let Emacs start one of its own: M-x contexture-disconnect" path)))
      (`(:tcp . ,_)
       (list 'fail text
             (format "Check that a server runs there (contexture serve --tcp HOST:PORT).
A server on another machine needs the secret, which Emacs reads from %s."
                     (contexture--abbreviate contexture-secret-file))))
      (_
       (list 'fail text "The server's log may tell more."
             (cons "Show the server's log"
                   (lambda () (pop-to-buffer
                               (get-buffer-create contexture--log-buffer)))))))))

;;;; What is around

(defun contexture-doctor--check-buffer (then)
  "Call THEN with the finding on the context of the user's buffer."
  (funcall
   then
   (contexture--with-live-buffer contexture-doctor--origin
     (list (list 'ok (format "In buffer %s, commands work on the context of %s (%s)"
                             (buffer-name)
                             (contexture--label (contexture--known-context))
                             (if contexture-context "chosen with contexture-switch"
                               (format "contexture-add-to is %s" contexture-add-to))))
           (list 'note (format "contexture-mode, which marks what is in the context, \
is %s there"
                               (if (bound-and-true-p contexture-mode) "on" "off")))))))

(defun contexture-doctor--check-keys (then)
  "Check that the commands are bound to a key; then call THEN."
  (let ((found (with-current-buffer (if (buffer-live-p contexture-doctor--origin)
                                        contexture-doctor--origin
                                      (current-buffer))
                 (cl-some (lambda (command)
                            (when-let* ((key (where-is-internal command nil t)))
                              (cons command (key-description key))))
                          '(contexture-add-dwim contexture-list contexture-menu)))))
    (funcall
     then
     (list (if found (list 'ok (format "%s is on %s" (car found) (cdr found)))
             (list 'note "The commands are not bound to a key"
                   "The package binds no key by itself.  In your init file, write:
(global-set-key (kbd \"C-c x\") 'contexture-command-map)"))))))

(defun contexture-doctor--check-gptel (then)
  "Check whether gptel is installed and sends the context; then call THEN."
  (funcall
   then
   (list (cond ((bound-and-true-p contexture-gptel-mode)
                (list 'ok (if (featurep 'gptel) "gptel sends the context"
                            "gptel will send the context once it is loaded")))
               ((locate-library "gptel")
                (list 'note "gptel is installed but does not send the context"
                      "To send the context, turn on contexture-gptel-mode."
                      (cons "Turn on contexture-gptel-mode"
                            (lambda () (contexture-gptel-mode 1)
                              (revert-buffer)))))
               (t (list 'note "gptel is not installed"))))))

;;; Show the server in use

;; `contexture-info' shows the server that this Emacs is connected to,
;; and what it holds.  It shows answers as they come; it starts no server
;; and never waits.

(defconst contexture-info-buffer "*contexture: info*"
  "Name of the buffer that shows the server in use.")

(defvar contexture-info-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map "d" #'contexture-doctor)
    map)
  "Keymap of `contexture-info-mode'.")

(define-derived-mode contexture-info-mode special-mode "Contexture-Info"
  "Major mode for what `contexture-info' shows.
\\<contexture-info-mode-map>\\[revert-buffer] asks again, and \
\\[contexture-doctor] checks the set-up.

See Info node `(contexture)Troubleshooting'.

\\{contexture-info-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq-local word-wrap t
              truncate-lines nil
              wrap-prefix (make-string 16 ?\s)
              revert-buffer-function (lambda (&rest _) (contexture-info--ask))))

;;;###autoload
(defun contexture-info ()
  "Show the server that this Emacs is connected to, and its contents."
  (interactive)
  (pop-to-buffer (get-buffer-create contexture-info-buffer))
  (unless (derived-mode-p 'contexture-info-mode)
    (contexture-info-mode))
  (contexture-info--ask))

(defun contexture-info--ask ()
  "Ask the server about itself, and show its answer."
  (let ((buffer (current-buffer)))
    (if (not (contexture-running-p))
        (contexture-info--show
         buffer
         (concat (if contexture--connection
                     (contexture--format "The server cannot be reached: %s.\n"
                                         (or (oref contexture--connection reason)
                                             "no answer yet"))
                   "This Emacs is not connected; the first command connects it.\n")
                 (substitute-command-keys
                  "\n\\<contexture-info-mode-map>\\[contexture-doctor] checks \
the set-up.\n")))
      (contexture-info--show buffer "Asking the server...\n")
      (contexture--probe-call
       'initialize nil contexture-doctor-timeout
       (lambda (outcome value)
         (if (eq outcome 'answered)
             (contexture-request-async
              'list-managers nil
              :success (lambda (managers)
                         (contexture-info--show
                          buffer (contexture-info--text value managers))))
           (contexture-info--show
            buffer (substitute-command-keys
                    "The server does not answer.\n
\\<contexture-info-mode-map>\\[contexture-doctor] looks for the reason.\n"))))))))

(defun contexture-info--show (buffer text)
  "Show TEXT in BUFFER, if BUFFER is still live."
  (contexture--with-live-buffer buffer
    (let ((inhibit-read-only t))
      (erase-buffer)
      (insert text)
      (contexture--shorten-lines "not shown")
      (goto-char (point-min)))))

;;;; The text

(defun contexture-info--text (info managers)
  "Return the text for INFO, from `initialize', and for MANAGERS.
The managers with the newest items come first."
  (concat
   (mapconcat (lambda (row)
                (format "%s %s\n" (propertize (format "%-15s" (car row)) 'face 'bold)
                        (contexture--visible (cdr row))))
              (contexture-info--rows info managers) "")
   (if managers "\n" "")
   (mapconcat (lambda (entry)
                (format "%5d of %-4d %8d tokens  %s\n"
                        (plist-get entry :count) (plist-get entry :max-items)
                        (or (plist-get entry :tokens) 0)
                        (contexture--label (plist-get entry :manager))))
              (cl-sort (copy-sequence managers) #'>
                       :key (lambda (entry) (or (plist-get entry :newest) 0)))
              "")))

(defun contexture-info--rows (info managers)
  "Return pairs of a label and a value for INFO and MANAGERS."
  (let ((pid (plist-get info :pid)))
    `(("Server" . ,(format "%s %s" (plist-get info :name) (plist-get info :version)))
      ("Process" . ,(if-let* ((seconds (contexture-info--uptime pid)))
                        (format "%s, up %s" pid seconds)
                      (format "%s" pid)))
      ("Connected" . ,(contexture-info--transport pid))
      ("State" . ,(if-let* ((folder (plist-get info :state)))
                      (contexture--abbreviate folder)
                    "not saved"))
      ("Tokens" . ,(format "counted by %s"
                           (contexture--name (plist-get info :token-counter))))
      ("Limit" . ,(format "%s; %d for projects, files, buffers and conversations"
                             (contexture--count
                              (plist-get (plist-get info :limits) :max-items)
                              "item")
                             contexture--max-items))
      ;; The server counts what covered items have, too, unlike the list.
      ("Contexts" . ,(format "%d with %s, covered items included" (length managers)
                             (contexture--size (contexture--sum :count managers)
                                               (contexture--sum :tokens managers)))))))

(defun contexture-info--transport (pid)
  "Return a phrase for the connection to the server with process PID."
  (pcase (oref contexture--connection target)
    (`(:unix ,path) (format "through the socket %s" (contexture--abbreviate path)))
    (`(:tcp ,host ,port) (format "by TCP, %s:%d" host port))
    (`(,program . ,_)
     (let ((own (process-id (oref contexture--connection process))))
       ;; In a batch Emacs, a shell stands between.
       (if (memq own (list pid (alist-get 'ppid (process-attributes pid))))
           (format "through a pipe; this Emacs started %s"
                   (contexture--abbreviate program))
         (format "through process %s, to a server that was already running" own))))))

(defun contexture-info--uptime (pid)
  "Return the running time of process PID as text, or nil if unknown."
  (when-let* ((elapsed (and (not (keywordp (car (oref contexture--connection target))))
                            (alist-get 'etime (process-attributes pid)))))
    (format-seconds "%dd %hh %mm %z%ss" elapsed)))

;;; Set up coding agents

;; `contexture-setup-agent' enters Contexture into the configuration of a
;; coding agent, by `contexture setup'.  It shows the difference first,
;; and changes files only when the user agrees.

(defconst contexture-setup-buffer "*contexture: set-up*"
  "Name of the buffer that shows what would change.")

(defconst contexture-setup--names
  '(("Claude Code" . "claude") ("Codex" . "codex")
    ("Gemini CLI" . "gemini") ("OpenCode" . "opencode"))
  "Alist from the names of agents to their names on the command line.")

(defconst contexture-setup--here ", only in this project"
  "Suffix of the name of an agent that is set up for one project.")

(defun contexture-setup--read (prompt)
  "Ask with PROMPT for an agent; return a list of its name and a folder.
The folder is this project's if the agent is to be set up only there, else
nil."
  (let* ((names (mapcar #'car contexture-setup--names))
         (project (contexture--project-root))
         (here (and project
                    (mapcar (lambda (name) (concat name contexture-setup--here)) names)))
         (choice (completing-read prompt (append names here) nil t))
         (name (string-remove-suffix contexture-setup--here choice)))
    (when (string-empty-p choice)
      (user-error "No agent was chosen"))
    (list (cdr (assoc name contexture-setup--names))
          (unless (equal name choice) project))))

;;;###autoload
(defun contexture-setup-agent (agent &optional project remove)
  "Add Contexture to the configuration of AGENT, after showing the changes.
AGENT is claude, codex, gemini or opencode.  With PROJECT, a folder, use
the configuration of that project instead of yours.  With a prefix
argument, or if REMOVE is non-nil, remove Contexture again."
  (interactive
   (append (contexture-setup--read
            (if current-prefix-arg "Remove Contexture from: " "Set up agent: "))
           (list current-prefix-arg)))
  (let* ((arguments (append (list "setup" agent)
                            (and project '("--project"))
                            (and remove '("--remove"))))
         (difference (contexture-setup--run project (append arguments '("--dry-run")))))
    (if (not (string-match-p "^[-+]" difference))
        (contexture--message "Contexture: %s" (contexture-setup--brief difference))
      (with-current-buffer (get-buffer-create contexture-setup-buffer)
        (let ((inhibit-read-only t))
          (contexture--enter-mode 'diff-mode (contexture--visible difference t)))
        (setq buffer-read-only t)
        (display-buffer (current-buffer)))
      (contexture--message
       "Contexture: %s"
       (if (contexture--y-or-n-p (if remove "Remove this? " "Add this? "))
           (contexture-setup--brief (contexture-setup--run project arguments))
         "nothing was changed")))))

(defun contexture-setup--run (folder arguments)
  "Run the program with ARGUMENTS in FOLDER, and return what it printed.
FOLDER nil means the home folder.  Signal an error if the program fails."
  (let* ((command (or (contexture-doctor--command)
                      (user-error "The server's program is not installed; \
M-x contexture-doctor says what to do")))
         (arguments (append (cdr command) arguments (contexture-doctor--own-arguments)))
         (directory (or folder (expand-file-name "~/"))))
    (with-temp-buffer
      (let* ((default-directory directory)
             (status (apply #'call-process (car command) nil t nil arguments)))
        (unless (eq status 0)
          (contexture--user-error "%s" (contexture--trim (buffer-string)))))
      (buffer-string))))

(defun contexture-setup--brief (output)
  "Return the lines of OUTPUT that are no part of a diff, joined into one."
  (string-join (seq-remove (lambda (line) (string-match-p "\\`\\(?:[-+@]\\|\\'\\)" line))
                           (split-string output "\n"))
               "; "))

;;; Ask a server that may not answer

;; The doctor's questions: to a program that should print something and
;; end, to a server connected just for the question, and to the connection
;; in use.  Each question has a time limit, does not block Emacs, and
;; leaves no process behind.  This part knows nothing about findings.
;;
;; `contexture--probe-server' says how a question to a server ends.

(defvar contexture--probes nil
  "Processes and timers of the pending questions.")

(defun contexture--end-probes ()
  "End all pending questions without calling their functions."
  (dolist (probe contexture--probes)
    (if (timerp probe) (cancel-timer probe)
      (contexture--delete-process probe)))
  (setq contexture--probes nil))

(defun contexture--probe-program (command timeout function)
  "Run COMMAND, a list, for at most TIMEOUT seconds, then call FUNCTION.
FUNCTION gets the exit status, or `silent' if the time was too short, or a
string if COMMAND could not be run; and the output, including stderr."
  (condition-case problem
      (let ((output ""))
        (contexture--probe
         (with-temp-buffer           ; away from buffer-local environments
           (let ((default-directory "/"))
             (make-process :name "contexture probe" :command command
                           :connection-type 'pipe :coding 'utf-8-unix
                           :noquery t)))
         timeout
         (lambda (_ text) (setq output (concat output text)) nil)
         (lambda (process)
           (funcall function
                    (if process (process-exit-status process) 'silent)
                    output))))
    (error (funcall function (error-message-string problem) ""))))

(defun contexture--probe-server (target timeout function)
  "Ask the server at TARGET for `initialize', within TIMEOUT seconds.
If TARGET is a command, start it for the question.  Call FUNCTION with an
outcome and a value: `answered' and the result; `stranger' and a line that
is no such answer; `refused' and the reason; or `silent' and nil."
  (condition-case problem
      (let ((heard "")
            (process (contexture--open target)))
        (contexture--probe
         process timeout
         (lambda (_ text)
           (string-search "\n" (setq heard (concat heard text))))
         (lambda (process)
           (contexture--judge-probe heard process function))
         (lambda (process)
           (process-send-string
            process
            (concat (when-let* ((secret (contexture--secret target)))
                      (concat secret "\n"))
                    "(:id 1 :method \"initialize\")\n")))))
    (error (funcall function 'refused (contexture--open-problem problem)))))

(defun contexture--judge-probe (heard process function)
  "Call FUNCTION with the outcome of HEARD, the output of PROCESS.
PROCESS is nil if it did not answer in time."
  (let* ((line (car (split-string heard "\n")))
         (message (ignore-errors (contexture--decode line)))
         (info (plist-get message :result)))
    (cond ((and (listp info) (equal "contexture" (plist-get info :name)))
           (funcall function 'answered info))
          ((not (string-empty-p line)) (funcall function 'stranger line))
          ((null process) (funcall function 'silent nil))
          (t (funcall function 'refused
                      (or (contexture--last-words process)
                          "it closed the connection without an answer"))))))

(defun contexture--probe-call (method params timeout function)
  "Call METHOD with PARAMS of the server in use, within TIMEOUT seconds.
Call FUNCTION with `answered' and the result, `refused' and the reason, or
`silent' and nil."
  (let* ((connection contexture--connection)
         (timer nil)
         (end (lambda (outcome value)
                (when (memq timer contexture--probes)
                  (cancel-timer timer)
                  (setq contexture--probes (delq timer contexture--probes))
                  (funcall function outcome value))))
         (id (contexture-request-async
              method params
              :success (lambda (result) (funcall end 'answered result))
              :error (lambda (problem)
                       (funcall end 'refused (plist-get problem :message))))))
    (setq timer (run-at-time timeout nil
                             (lambda ()
                               (funcall end 'silent nil)
                               (contexture--cancel connection id))))
    (push timer contexture--probes)))

(defun contexture--probe (process timeout filter end &optional begin)
  "Watch PROCESS until it ends or FILTER returns non-nil; then call END.
FILTER gets PROCESS and a text.  END gets PROCESS, or nil after TIMEOUT
seconds.  BEGIN is called with PROCESS once it is open."
  (let* ((timer nil)
         (finish (lambda (ended)
                   (when (memq process contexture--probes)
                     (cancel-timer timer)
                     (setq contexture--probes
                           (delq timer (delq process contexture--probes)))
                     (contexture--later
                      (lambda ()
                        (unwind-protect (funcall end (and ended process))
                          (contexture--end-process process))))))))
    (set-process-filter process (lambda (process text)
                                  (when (funcall filter process text)
                                    (funcall finish t))))
    (set-process-sentinel process
                          (lambda (process _)
                            (pcase (process-status process)
                              ('open (when begin (funcall begin process)))
                              ((or 'run 'stop 'connect))
                              (_ (funcall finish t)))))
    (setq timer (run-at-time timeout nil finish nil))
    (setq contexture--probes (cons timer (cons process contexture--probes)))
    (when (and begin (memq (process-status process) '(run open)))
      (funcall begin process))))

(defun contexture--target-name (target)
  "Return a name for the server at TARGET."
  (pcase target
    (`(:tcp ,host ,port) (format "%s:%d" host port))
    ((or `(:unix ,file) `(,file . ,_)) (contexture--abbreviate file))))

(provide 'contexture-doctor)
;;; contexture-doctor.el ends here
