;;; contexture-provider.el --- Set up models from Emacs  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Sends `contexture-providers' to each server that Emacs connects to,
;; before the waiting calls, so that a restarted server knows them too.
;; Keys in `auth-source' are looked up outside of the process filter,
;; since a look-up may ask for a passphrase; Emacs then keeps the function
;; that returns the key, never the key.  Buffers that show messages leave keys
;; out (see `contexture--redact').

;;; Code:

(require 'contexture-connection)
(eval-when-compile (require 'subr-x))

(declare-function auth-source-search "auth-source" (&rest spec))
(declare-function auth-source-forget+ "auth-source" (&rest spec))
(declare-function custom-file "cus-edit" (&optional no-error))
(declare-function customize-save-variable "cus-edit" (variable value &optional comment))
(declare-function url-generic-parse-url "url-parse" (url))
(declare-function url-host "url-parse" (cl-x) t)
(declare-function contexture--name "contexture" (name))

(defconst contexture-provider--kinds
  '(("openai" . "https://api.openai.com/v1")
    ("anthropic" . "https://api.anthropic.com")
    ("gemini" . "https://generativelanguage.googleapis.com")
    ("ollama" . "http://localhost:11434")
    ("scripted"))
  "Kinds of providers, with their usual addresses.")

(defconst contexture-provider--keys
  '(:kind :model :base-url :auth-source :api-key-env :api-key-command :context
          :answer-tokens :max-tokens :price-input :price-output :default :script)
  "Keys of a provider in `contexture-providers'.
`:max-tokens' is the earlier name of `:answer-tokens'.")

(defvar contexture-provider--secrets (make-hash-table :test #'equal)
  "Hash table from (HOST USER) to a function that returns the key.")

(defvar contexture-provider--pending nil
  "Names of the providers whose keys are being looked up.")

(defvar contexture-provider--waiting nil
  "Functions to call when no key is being looked up any more.")

(defvar contexture-provider--awaited nil
  "Alist from the name of a provider that was just set up to its model.
The user gets a message once the server knows the provider.")

(defvar contexture-provider--entered nil
  "Names of providers whose settings the user has just entered.")

(defvar contexture-provider--problems nil
  "Alist from the name of a provider to the reason why the server lacks it.")

;;;; Telling a server

(defun contexture-provider--tell-all (connection)
  "Send all providers to CONNECTION's server, in order."
  (dolist (entry contexture-providers)
    (contexture-provider--tell connection entry)))

(defun contexture-provider--tell (connection entry)
  "Send ENTRY of `contexture-providers' to CONNECTION's server.
If its key must be looked up first, the entry is sent after that."
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
  "Return the parameters of `configure-provider' for ENTRY, without a key."
  (pcase-let ((`(,name . ,plist) entry))
    (unless (and (stringp name) (contexture-provider--plist-p plist))
      (user-error "An entry of `contexture-providers' must be (NAME . PLIST)"))
    (cl-loop for key in plist by #'cddr
             unless (memq key contexture-provider--keys)
             do (contexture--user-error "`contexture-providers' takes no %s; it takes %s" key
                            (mapconcat #'symbol-name contexture-provider--keys " ")))
    (cons :name
          (cons name
                (cl-loop for (key value) on plist by #'cddr
                         unless (or (null value) (eq key :auth-source))
                         nconc (list key (if (eq key :kind) (contexture--name value)
                                           value)))))))

(defun contexture-provider--plist-p (value)
  "Return non-nil if VALUE is a property list."
  (and (proper-list-p value) (cl-evenp (length value))))

(defun contexture-provider--send (connection name params secret)
  "Send the provider NAME with PARAMS to CONNECTION's server.
SECRET is a function that returns the key, or nil."
  (let ((contexture--own-call t))
    (jsonrpc-async-request
     connection 'configure-provider
     (if secret (append params (list :api-key (funcall secret))) params)
     :timeout nil
     :success-fn (lambda (_)
                   (contexture-provider--accepted name)
                   (contexture--later #'run-hooks 'contexture-providers-hook))
     :error-fn (lambda (problem)
                 (contexture-provider--failed
                  name (if (eql (plist-get problem :code) -32601)
                           "this server accepts no providers from Emacs; install a newer one"
                         (plist-get problem :message)))))))

(defun contexture-provider--accepted (name)
  "Record that the server now has the provider NAME.
If the user has just set it up, show a message."
  (let ((awaited (assoc name contexture-provider--awaited)))
    (contexture-provider--settled name nil)
    (when awaited
      (contexture--later #'contexture--message
                         "Added provider %s %s"
                         name (cdr awaited))
      (contexture-provider--try name))))

(defun contexture-provider--try (name)
  "Ask the provider NAME for its models, and tell the user if it fails.
If the user has just entered its settings, offer to correct them."
  (let ((asked (member name contexture-provider--entered)))
    (setq contexture-provider--entered (remove name contexture-provider--entered))
    (contexture-request-async
     'list-models (list :provider name)
     :error (lambda (problem)
              (let ((reason (plist-get problem :message)))
                (if asked (contexture-provider--correct name reason)
                  (contexture--message "Contexture: provider %s does not answer: %s"
                                       name reason)))))))

(defun contexture-provider--correct (name reason)
  "Ask whether to keep the settings of the provider NAME, which failed for REASON."
  (pcase (car (read-multiple-choice
               (contexture--format "Provider %s does not answer: %s" name reason)
               '((?k "keep" "Keep the settings; you can start the provider later")
                 (?c "correct" "Enter the settings again"))))
    (?c (call-interactively #'contexture-configure-provider))
    (_ (contexture--message "Contexture: kept the settings of provider %s; start it, or \
correct them with M-x contexture-configure-provider" name))))

(defun contexture-provider--settled (name problem)
  "Record that the server has NAME, or the PROBLEM, a string, if it does not."
  (setf (alist-get name contexture-provider--awaited nil t #'equal) nil
        (alist-get name contexture-provider--problems nil t #'equal) problem))

(defun contexture-provider--failed (name reason)
  "Tell the user the REASON why the server lacks the provider NAME."
  (contexture-provider--settled name reason)
  (contexture--later #'contexture--message "Contexture: provider %s: %s" name reason))

;;;; Keys

(defun contexture-provider--place (entry)
  "Return (HOST USER) of the key of ENTRY in auth-source, or nil.
USER nil means any user."
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
                (contexture--user-error "Which :host has the key of %s?" (car entry)))
            (plist-get (and (listp source) source) :user)))))

(defun contexture-provider--look-up (connection entry params place)
  "Look up the key of ENTRY at PLACE; send it with PARAMS to CONNECTION's server."
  (unwind-protect
      (condition-case problem
          (let ((secret (with-local-quit (contexture-provider--secret place))))
            (cond ((null secret)
                   (contexture-provider--failed
                    (car entry) (contexture-provider--no-key place)))
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
  (dolist (function (nreverse (prog1 contexture-provider--waiting
                                (setq contexture-provider--waiting nil))))
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

(defun contexture-provider--no-key (place)
  "Return the message that there is no key at PLACE."
  (format "auth-source has no key for host %s; add this line to ~/.authinfo.gpg: \
machine %s login %s password KEY"
          (car place) (car place) (or (cadr place) "apikey")))

(defun contexture-provider--when-ready (function)
  "Call FUNCTION as soon as no key is being looked up, perhaps now."
  (if contexture-provider--pending
      (push function contexture-provider--waiting)
    (funcall function)))

;;;; A command

;;;###autoload
(defun contexture-configure-provider (name settings &optional save)
  "Set up a model to talk to, as the provider NAME with SETTINGS.
Interactively, you are asked for what is needed, and for the place of the
key, never for the key itself.  This adds SETTINGS to
`contexture-providers'; with SAVE, also for later sessions of Emacs."
  (interactive (contexture-provider--read))
  (let ((entry (cons name settings)))
    (contexture-provider--params entry) ; this checks ENTRY
    (when (called-interactively-p 'any) (push name contexture-provider--entered))
    (setq contexture-providers
          (append (cl-remove name contexture-providers :key #'car :test #'equal)
                  (list entry)))
    (when save (customize-save-variable 'contexture-providers contexture-providers))
    (contexture-provider--forget-key (contexture-provider--place entry))
    (setf (alist-get name contexture-provider--awaited nil nil #'equal)
          (concat (format "(model %s)" (plist-get settings :model))
                  (if (and save (null (custom-file t)))
                      "; not saved, since this Emacs read no init file"
                    "")))
    (if (contexture-running-p)
        (contexture-provider--tell contexture--connection entry)
      (contexture-request-async 'ping))))

(defun contexture-provider--forget-key (place)
  "Forget the key at PLACE, which may be nil, so that it is looked up again.
Also clear what auth-source remembers about the host of PLACE."
  (when place
    (require 'auth-source)
    (remhash place contexture-provider--secrets)
    (auth-source-forget+ :host (car place))))

(defun contexture-provider--read ()
  "Ask for a provider; return a list of its name, its settings, and SAVE."
  (let* ((kind (completing-read "Kind of provider: "
                                (mapcar #'car contexture-provider--kinds) nil t))
         (name (contexture-provider--read-text (format-prompt "Name of the provider" kind) kind))
         (usual (cdr (assoc kind contexture-provider--kinds)))
         (scripted (equal kind "scripted"))
         (url (and (not scripted)
                   (contexture-provider--read-text (format-prompt "Address" usual)
                                                   usual)))
         (script (and scripted (expand-file-name (read-file-name "Script: " nil nil t))))
         (model (or (contexture-provider--read-text "Model: " (and scripted "scripted"))
                    (user-error "A provider needs a model"))))
    (list name
          (append (list :kind kind :model model)
                  (and (equal kind "ollama") (contexture-provider--read-context))
                  (and script (list :script script))
                  (and url (not (equal url usual)) (list :base-url url))
                  (unless (member kind '("ollama" "scripted"))
                    (contexture-provider--read-key)))
          (y-or-n-p "Save it for later sessions of Emacs? "))))

(defun contexture-provider--read-text (prompt default)
  "Ask with PROMPT; return the trimmed text, or DEFAULT."
  (let ((text (string-trim (read-string prompt nil nil default))))
    (if (string-empty-p text) default text)))

(defun contexture-provider--read-context ()
  "Ask for Ollama's context length; return it as a setting.
Ollama's default is often so small that it cuts the request."
  (list :context (truncate (read-number "Context length in tokens: " 16384))))

(defun contexture-provider--read-key ()
  "Ask for the place of a provider's key; return it as settings."
  (pcase (completing-read "Where is the key? "
                          '("auth-source" "environment variable" "command" "none needed")
                          nil t nil nil "auth-source")
    ("auth-source" '(:auth-source t))
    ("environment variable" (list :api-key-env (read-string "Variable: ")))
    ("command" (list :api-key-command (read-string "Command that prints it: ")))))

(provide 'contexture-provider)
;;; contexture-provider.el ends here
