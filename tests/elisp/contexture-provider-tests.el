;;; contexture-provider-tests.el --- Tests of models that Emacs names  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What a server is told of `contexture-providers', where keys come from,
;; that none of them is ever shown, and what the doctor says of models.

;;; Code:

(require 'auth-source)
(require 'contexture-doctor)
(require 'contexture-conversation-test-helper)

(defconst contexture-provider-tests--key "sk-\"very\\ secret\""
  "A key with what must be escaped in it.")

(defmacro contexture-provider-tests--with (lines &rest body)
  "Run BODY with a server, and with LINES in a file of auth-source's."
  (declare (indent 1) (debug t))
  `(contexture-conversation-test--with-model nil
     (lambda ()
       (let* ((authinfo (contexture-test-file "authinfo" ,@lines))
              (auth-sources (list authinfo))
              (auth-source-do-cache nil)
              (contexture-provider--secrets (make-hash-table :test #'equal))
              (contexture-provider--pending nil)
              (contexture-provider--waiting nil)
              (contexture-provider--problems nil)
              (contexture-provider--awaited nil)
              (contexture-providers-hook nil))
         ,@body))))

(defun contexture-provider-tests--names ()
  "Return the names of the providers that the server knows."
  (contexture-request 'ping)
  (llm-ert-wait-for (null contexture-provider--pending))
  (contexture-test-settle)
  (mapcar (lambda (it) (plist-get it :name)) (contexture-request 'list-providers)))

;;;; Telling

(ert-deftest contexture-provider-is-told-to-each-server ()
  (contexture-provider-tests--with nil
    (setq contexture-providers
          (list (cons "play" (contexture-conversation-test-provider))
                '("local" :kind ollama :model "llama" :base-url "http://localhost:1")))
    (should (equal (contexture-provider-tests--names) '("play" "local")))
    (contexture-ert-kill-server t)
    (llm-ert-wait-for (not (contexture-running-p)))
    (should (equal (contexture-provider-tests--names) '("play" "local")))
    (should-not contexture-provider--problems)))

(ert-deftest contexture-provider-is-told-before-what-waits ()
  (contexture-conversation-test-with '(("One" hang) ("The whole"))
    (contexture-conversation-test-begin "Count" "One")
    (contexture-ert-kill-server t)
    (contexture-conversation-test-wait)
    (should (string-search "scripted\nThe whole\n" (contexture-conversation-test-shown)))
    (should-not (string-search "Error" (contexture-conversation-test-shown)))))

(ert-deftest contexture-provider-may-be-the-default ()
  (contexture-provider-tests--with nil
    (setq contexture-providers
          '(("one" :kind ollama :model "a") ("two" :kind ollama :model "b" :default t)))
    (contexture-provider-tests--names)
    (should (equal (plist-get (cl-find-if (lambda (it) (plist-get it :default))
                                          (contexture-request 'list-providers))
                              :name)
                   "two"))))

(ert-deftest contexture-provider-that-is-wrong-is-told-of-and-spares-the-others ()
  (contexture-provider-tests--with nil
    (setq contexture-providers
          '(("bad" :kind ollama :modle "a") ("odd" :kind "magic" :model "a")
            ("good" :kind ollama :model "a")))
    (contexture-test-message "provider odd: .*kind"
      (should (equal (contexture-provider-tests--names) '("good"))))
    (should (string-match-p "takes no :modle; it takes :kind"
                            (cdr (assoc "bad" contexture-provider--problems))))))

(ert-deftest contexture-provider-kinds-and-settings-are-those-of-the-server ()
  (contexture-provider-tests--with nil
    (setq contexture-providers
          (mapcar (lambda (it)
                    `( ,(car it) :kind ,(car it) :model "m"
                       ,@(when (equal (car it) "scripted")
                           (list :script (contexture-test-file
                                          "play.toml" "[[answer]]" "text = \"A\"")))))
                  contexture-provider--kinds))
    (should-not (cl-set-difference (mapcar #'car contexture-provider--kinds)
                                   (contexture-provider-tests--names) :test #'equal))
    (let ((known (mapcar (lambda (it) (intern (concat ":" (car it))))
                         (contexture-test-params 'configure-provider))))
      ;; Every setting of the server can be given here, and no other.
      (should-not (cl-set-exclusive-or (remq :auth-source contexture-provider--keys)
                                       (cl-set-difference known '(:name :api-key :request-key))))
      (dolist (setting contexture-provider--further)
        (should (memq (intern (concat ":" (car setting))) contexture-provider--keys))))))

(ert-deftest contexture-provider-nobody-named-costs-nothing ()
  (contexture-provider-tests--with nil
    (cl-letf (((symbol-function 'contexture-provider--tell-all)
               (lambda (_) (error "Must not be called"))))
      (should-not (contexture-provider-tests--names)))))

;;;; Keys

(defun contexture-provider-tests--heard (entry)
  "Return what a server is told of ENTRY, as a plist."
  (let (told)
    (cl-letf (((symbol-function 'jsonrpc-async-request)
               (lambda (_ method params &rest _)
                 (push (cons method params) told)))
              ((symbol-function 'jsonrpc-running-p) #'always))
      (contexture-provider--tell nil entry)
      (llm-ert-wait-for (null contexture-provider--pending)))
    (cdr (assq 'configure-provider told))))

(ert-deftest contexture-provider-key-comes-from-auth-source ()
  (contexture-provider-tests--with
      ("machine api.anthropic.com login apikey password sk-a"
       "machine api.anthropic.com login other password sk-other"
       "machine llm.example.org login me password sk-me")
    (dolist (case '(((:kind anthropic :auth-source t) "sk-a")
                    ((:kind anthropic :auth-source (:user "other")) "sk-other")
                    ((:kind openai :base-url "https://llm.example.org:8443/v1"
                            :auth-source t)
                     "sk-me")
                    ((:kind gemini :auth-source (:host "llm.example.org")) "sk-me")))
      (let ((told (contexture-provider-tests--heard `("x" :model "m" ,@(car case)))))
        (should (equal (plist-get told :api-key) (cadr case)))
        (should-not (plist-member told :auth-source))
        (should (stringp (plist-get told :kind)))))))

(ert-deftest contexture-provider-key-is-not-looked-up-in-the-filter ()
  (contexture-provider-tests--with
      ("machine api.anthropic.com login apikey password sk-a")
    (let (looked)
      (cl-letf (((symbol-function 'contexture-provider--secret)
                 (lambda (_) (setq looked t) (lambda () "sk-a"))))
        (cl-letf (((symbol-function 'jsonrpc-async-request) #'ignore)
                  ((symbol-function 'jsonrpc-running-p) #'always))
          (contexture-provider--tell nil '("x" :kind anthropic :model "m" :auth-source t))
          (should-not looked)
          (should (equal contexture-provider--pending '("x")))
          (let (went-on)
            (contexture-provider--when-ready (lambda () (setq went-on t)))
            (should-not went-on)
            (llm-ert-wait-for went-on))
          (should looked)
          ;; The next server is told at once.
          (contexture-provider--tell nil '("x" :kind anthropic :model "m" :auth-source t))
          (should-not contexture-provider--pending))))))

(ert-deftest contexture-provider-without-a-key-says-what-to-write-where ()
  (contexture-provider-tests--with ()
    (contexture-test-message "auth-source has no key for host api.anthropic.com; add this line to ~/.authinfo.gpg: machine api.anthropic.com login apikey password KEY"
      (should-not (contexture-provider-tests--heard
                   '("x" :kind anthropic :model "m" :auth-source t))))
    (should (assoc "x" contexture-provider--problems))))

(ert-deftest contexture-provider-question-waits-for-the-key ()
  (contexture-conversation-test-with '(("A"))
    (setq contexture-provider--pending '("x"))
    (contexture-conversation-test-type "Q")
    (contexture-conversation-send)
    (llm-ert-wait-for contexture-provider--waiting)
    (should (contexture-conversation--busy-p))
    (setq contexture-provider--pending nil)
    (contexture-provider--go-on)
    (contexture-conversation-test-wait)
    (should (string-search "scripted\nA\n" (contexture-conversation-test-shown)))))

(ert-deftest contexture-provider-waiting-function-that-fails-strands-no-other ()
  (contexture-provider-tests--with
      ("machine api.anthropic.com login apikey password sk-a")
    (let (went-on)
      (cl-letf (((symbol-function 'jsonrpc-async-request) #'ignore)
                ((symbol-function 'jsonrpc-running-p) #'always))
        (contexture-provider--tell nil '("x" :kind anthropic :model "m" :auth-source t))
        (contexture-provider--when-ready (lambda () (push 1 went-on)))
        (contexture-provider--when-ready (lambda () (error "Out of order")))
        (contexture-provider--when-ready (lambda () (push 2 went-on)))
        (contexture-test-message "Contexture: Out of order"
          (llm-ert-wait-for (null contexture-provider--pending)))
        (llm-ert-wait-for (equal went-on '(2 1)))
        (should-not contexture-provider--waiting)))))

(ert-deftest contexture-provider-key-is-shown-nowhere ()
  (let ((contexture-events-buffer-size 100000))
    (contexture-provider-tests--with ()
      (cl-letf (((symbol-function 'contexture-provider--secret)
                 (lambda (_) (lambda () contexture-provider-tests--key))))
        (setq contexture-providers
              '(("x" :kind openai :model "m" :base-url "http://localhost:1/v1"
                 :auth-source t)))
        (should (equal (contexture-provider-tests--names) '("x")))
        (let ((lines (mapconcat (lambda (it) (format "%s" it)) llm-ert--said "")))
          (should (string-search "configure-provider" lines)))
        (contexture-doctor)
        (llm-ert-wait-for (string-search "contexture-mode" (buffer-string)))
        (dolist (buffer (buffer-list))
          (with-current-buffer buffer
            (should-not (save-excursion (goto-char (point-min))
                                        (search-forward "very\\" nil t)))))
        (should-not (string-search "secret" (format "%S" llm-ert--said)))
        (should-not (cl-some (lambda (call)
                               (string-search "secret" (contexture--call-line call)))
                             (hash-table-values
                              (oref contexture--connection unanswered))))))))

(ert-deftest contexture-provider-redacts-whatever-the-key-has-in-it ()
  (dolist (key (list contexture-provider-tests--key "" "a" "\\" "\"" "a\\\"b :api-key \"c"))
    (let ((line (car (contexture--encode (list :id 1 :method 'configure-provider
                                               :params (list :api-key key :name "x"))))))
      (should (equal (contexture--redact line)
                     "(:id 1 :method configure-provider :params \
(:api-key \"(hidden)\" :name \"x\"))\n")))))

(ert-deftest contexture-provider-redacts-the-values-of-headers ()
  (let ((line (car (contexture--encode
                    (list :id 1 :method 'configure-provider
                          :params '(:name "x" :headers ((:name "X-Key" :value "sk-\"a\\"))))))))
    (should (equal (contexture--redact line)
                   "(:id 1 :method configure-provider :params \
(:name \"x\" :headers ((:name \"X-Key\" :value \"(hidden)\"))))\n")))
  (should (equal (contexture--redact "(:method remember :value \"x\")")
                 "(:method remember :value \"x\")")))

(ert-deftest contexture-provider-extra-members-are-json ()
  (should (equal (plist-get (contexture-provider--params
                             '("x" :kind openai :extra (:top_k 40 :stop ["a"])))
                            :extra)
                 "{\"top_k\":40,\"stop\":[\"a\"]}"))
  (should (equal (plist-get (contexture-provider--params '("x" :extra "{\"a\":1}")) :extra)
                 "{\"a\":1}")))

(ert-deftest contexture-provider-models-show-what-is-known-of-them ()
  (let ((names (contexture--model-names
                '(:models ((:name "a" :limit 8192 :tools t :pictures nil :effort t)
                           (:name "b"))))))
    (should (equal names '("a" "b")))
    (should (equal (mapcar #'contexture--model-about names)
                   '("  8192 tokens, tools, effort" "")))
    (should (equal (contexture--model-about nil) ""))))

(ert-deftest contexture-provider-key-is-not-in-the-servers-log ()
  (with-temp-buffer
    (let ((pipe (make-pipe-process :name "log" :buffer (current-buffer) :noquery t)))
      (unwind-protect
          (contexture--log pipe "WARN (:method configure-provider :params \
(:api-key \"sk-a\" :name \"x\")) is too long\n")
        (delete-process pipe)))
    (should (string-search ":api-key \"(hidden)\" :name" (buffer-string)))
    (should-not (string-search "sk-a" (buffer-string)))))

;;;; The command

(ert-deftest contexture-provider-command-tells-the-server-at-once ()
  (contexture-provider-tests--with nil
    (contexture-conversation-test-open "talk")
    (llm-ert-wait-for (string-search "No model is set up"
                                            (contexture-conversation-test-shown)))
    (add-hook 'contexture-providers-hook #'contexture-conversation--providers-changed)
    (llm-ert-with-model '("A")
      (contexture-configure-provider "play" (contexture-conversation-test-provider))
      (llm-ert-wait-for (string-search "scripted" (contexture-conversation-test-header)))
      (should-not (string-search "No model is set up" (contexture-conversation-test-shown)))
      (contexture-conversation-test-send "Q")
      (should (string-search "scripted\nA" (contexture-conversation-test-shown)))
      (should (equal (mapcar #'car contexture-providers) '("model" "play"))))))

(ert-deftest contexture-provider-command-says-what-the-server-said ()
  (contexture-provider-tests--with nil
    (let ((start (with-current-buffer (messages-buffer) (point-max-marker))))
      (contexture-request 'ping)
      (contexture-ert-with-stopped-server
        (contexture-configure-provider "local" '(:kind ollama :model "llama"))
        (accept-process-output nil 0.05)
        (should-not (contexture-test--message-after start "told of")))
      (llm-ert-wait-for
       (contexture-test--message-after
        start "^Added provider local (model llama), for this Emacs only$"))
      (contexture-configure-provider "odd" '(:kind magic :model "m"))
      (llm-ert-wait-for (contexture-test--message-after start "provider odd: .*kind"))
      (should-not (contexture-test--message-after start "odd: the server was told"))
      (should-not contexture-provider--awaited)
      ;; It is said once, not to each server that comes later.
      (with-current-buffer (messages-buffer) (set-marker start (point-max)))
      (contexture-ert-kill-server t)
      (llm-ert-wait-for (not (contexture-running-p)))
      (contexture-provider-tests--names)
      (should-not (contexture-test--message-after start "told of")))))

(ert-deftest contexture-provider-command-says-when-nobody-answers ()
  (contexture-provider-tests--with nil
    (contexture-request 'ping)
    (contexture-test-message "cannot list the models of provider gone: .*the connection failed"
      (contexture-configure-provider
       "gone" '(:kind openai :model "m" :base-url "http://127.0.0.1:1/v1")))))

(ert-deftest contexture-provider-command-takes-a-key-that-was-corrected ()
  (contexture-provider-tests--with
      ("machine api.anthropic.com login apikey password sk-wrong")
    (let ((auth-source-do-cache t)
          (entry '("x" :kind anthropic :model "m" :auth-source t)))
      (auth-source-forget-all-cached)
      (should (equal (plist-get (contexture-provider-tests--heard entry) :api-key)
                     "sk-wrong"))
      (contexture-test-file "authinfo"
                            "machine api.anthropic.com login apikey password sk-right")
      (contexture-configure-provider (car entry) (cdr entry))
      (should (equal (plist-get (contexture-provider-tests--heard entry) :api-key)
                     "sk-right"))
      (auth-source-forget-all-cached))))

(ert-deftest contexture-provider-command-says-when-nothing-is-saved ()
  (contexture-provider-tests--with nil
    (let ((user-init-file nil))
      (contexture-test-message "(model scripted), not saved, since this Emacs"
        (contexture-configure-provider "play" (contexture-conversation-test-provider) t)))
    (let* ((custom-file (concat llm-ert-directory "custom.el"))
           (user-init-file custom-file))
      (contexture-test-message "(model scripted), saved in .*/custom\\.el for later$"
        (contexture-configure-provider "play" (contexture-conversation-test-provider) t))
      (should (file-exists-p custom-file)))
    (put 'contexture-providers 'saved-value nil)))

;;;; What the command asks for

(defvar contexture-provider-tests--asked nil
  "What the user was asked in this test, the last question first.")

(defmacro contexture-provider-tests--answering (answers &rest body)
  "Run BODY with ANSWERS to its questions; return the questions, in order.
An answer that is nil takes the default."
  (declare (indent 1) (debug t))
  `(let ((answers ,answers) (contexture-provider-tests--asked nil) (text-quoting-style 'straight))
     (cl-flet ((ask (prompt default)
                 (push prompt contexture-provider-tests--asked)
                 (should answers)
                 (or (pop answers) default)))
       (cl-letf (((symbol-function 'completing-read)
                  (lambda (prompt table &optional _ match _ _ default &rest _)
                    (let ((answer (ask prompt (or default ""))))
                      (when match (should (member answer (all-completions "" table))))
                      answer)))
                 ((symbol-function 'read-string)
                  (lambda (prompt &optional _ _ default &rest _) (ask prompt (or default ""))))
                 ((symbol-function 'read-number)
                  (lambda (prompt &optional default) (ask prompt default)))
                 ((symbol-function 'read-file-name) (lambda (prompt &rest _) (ask prompt "")))
                 ((symbol-function 'read-passwd) (lambda (prompt &rest _) (ask prompt "")))
                 ((symbol-function 'auth-source-netrc-saver)
                  (lambda (file line)
                    (ask "Save?" nil)
                    (write-region (concat line "\n") nil file t 'quiet)))
                 ((symbol-function 'y-or-n-p) (lambda (prompt) (equal (ask prompt "n") "y"))))
         ,@body))
     (should-not answers)
     (reverse contexture-provider-tests--asked)))

(defmacro contexture-provider-tests--serving (models key &rest body)
  "Run BODY, with `url' bound, while a server has MODELS, and wants KEY unless nil.
MODELS are pairs of a name and the limit that the server tells, or nil."
  (declare (indent 2) (debug t))
  `(let* ((key ,key)
          (json (json-encode
                 `((object . "list")
                   (data . ,(vconcat
                             (mapcar (pcase-lambda (`(,name ,limit))
                                       `((id . ,name)
                                         ,@(and limit `((context_length . ,limit)))))
                                     ,models))))))
          (listener
           (llm-ert--http-listen
            "models"
            (lambda (request)
              (let* ((process (plist-get request :process))
                     (knownp (or (null key)
                                 (string-search (concat "Bearer " key)
                                                (process-get process 'heard)))))
                (cond ((not knownp)
                       (llm-ert--http-answer process 401 "{\"error\": \"no key\"}"))
                      ((string-suffix-p "/models" (plist-get request :path))
                       (llm-ert--http-answer process 200 json))
                      (t (llm-ert--http-answer process 404 "{}")))))))
          (url (format "http://127.0.0.1:%d/v1" (process-contact listener :service))))
     (unwind-protect (progn ,@body)
       (delete-process listener))))

(defun contexture-provider-tests--added ()
  "Return the last entry of `contexture-providers', whose address is as it should be."
  (let ((entry (car (last contexture-providers))))
    (cons (car entry) (llm-ert--plist-without (cdr entry) :base-url))))

(ert-deftest contexture-provider-command-asks-for-as-little-as-it-can ()
  (contexture-provider-tests--with nil
    (let* ((custom-file (concat llm-ert-directory "custom.el"))
           (user-init-file custom-file)
           (limit "Limit of mystery in tokens, which its server does not tell: "))
      (unwind-protect
          (pcase-dolist (`(,models ,answers ,model ,context ,more)
                         ;; The server tells the limit; a table has it; nobody does.
                         `(((("mystery" 5000)) (nil) "mystery" nil ("Model (default mystery): "))
                           ((("llama3.2" nil) ("x" nil)) ("llama3.2") "llama3.2" nil ("Model: "))
                           ((("mystery" nil)) (nil 12000) "mystery" 12000
                            ("Model (default mystery): " ,limit))))
            (contexture-provider-tests--serving models nil
              (let ((host (substring url 7 -3)))
                (contexture-test-message
                    (format "^Added provider %s (model %s), saved in .*custom\\.el" host model)
                  (should (equal (contexture-provider-tests--answering
                                     `("openai" ,url ,@answers)
                                   (call-interactively #'contexture-configure-provider))
                                 `("Kind of provider: "
                                   "Address (default https://api.openai.com/v1): " ,@more))))
                (should (equal (contexture-provider-tests--added)
                               `(,host :kind "openai" :model ,model
                                       ,@(and context (list :context context)))))
                (contexture-test-settle)
                (should (equal (plist-get (contexture-request 'list-providers
                                                              (list :models t :provider host))
                                          :limit-from)
                               (cond (context :configuration)
                                     ((nth 1 (car models)) :server)
                                     (t :table)))))))
        (put 'contexture-providers 'saved-value nil)))))

(ert-deftest contexture-provider-command-asks-for-a-key-that-the-server-wants ()
  (contexture-provider-tests--with nil
    (cl-letf (((symbol-function 'customize-save-variable) #'set-default)
              (auth-source-save-behavior t))
      (contexture-provider-tests--serving '(("mystery" 5000)) "sk-entered"
        (should (equal (contexture-provider-tests--answering
                           `("openai" ,url "sk-entered" nil nil)
                         (call-interactively #'contexture-configure-provider))
                       `("Kind of provider: " "Address (default https://api.openai.com/v1): "
                         "Key for 127.0.0.1: " "Save?" "Model (default mystery): ")))
        (should (equal (cdr (contexture-provider-tests--added))
                       '(:kind "openai" :model "mystery" :auth-source (:user "apikey"))))
        ;; auth-source has it now.
        (should (equal (contexture-provider-tests--answering `("openai" ,url nil)
                         (call-interactively #'contexture-configure-provider))
                       '("Kind of provider: " "Address (default https://api.openai.com/v1): "
                         "Model (default mystery): ")))
        ;; A key that the server refuses is not replaced, and is said to be refused.
        (contexture-test-file "authinfo" "machine 127.0.0.1 login apikey password sk-other")
        (let ((asked (contexture-provider-tests--answering `("openai" ,url "m")
                       (call-interactively #'contexture-configure-provider))))
          (should (= (length asked) 3))
          (should (string-match-p "key.*; model (default mystery): " (car (last asked)))))))))

(ert-deftest contexture-provider-command-uses-no-other-password-of-a-host ()
  (contexture-provider-tests--with ("machine 127.0.0.1 login me password of-my-database")
    (cl-letf (((symbol-function 'customize-save-variable) #'set-default))
      (contexture-provider-tests--serving '(("mystery" 5000)) nil
        (contexture-provider-tests--answering `("openai" ,url nil)
          (call-interactively #'contexture-configure-provider))
        (should (equal (cdr (contexture-provider-tests--added))
                       '(:kind "openai" :model "mystery")))))))

(ert-deftest contexture-provider-command-that-is-left-leaves-nothing ()
  (contexture-provider-tests--with nil
    (contexture-provider-tests--serving '(("mystery" nil)) nil
      (let ((before (contexture-provider-tests--names)))
        (cl-letf (((symbol-function 'contexture-provider--choose-model)
                   (lambda (&rest _) (signal 'quit nil))))
          (should (eq 'quit (condition-case nil
                                (contexture-provider-tests--answering `("openai" ,url)
                                  (call-interactively #'contexture-configure-provider))
                              (quit 'quit)))))
        (contexture-test-settle)
        (should (equal (contexture-provider-tests--names) before))))))

(ert-deftest contexture-provider-command-works-while-nobody-answers ()
  (contexture-provider-tests--with nil
    (cl-letf (((symbol-function 'customize-save-variable) #'set-default))
      (let ((asked (contexture-provider-tests--answering
                       '("openai" "http://127.0.0.1:1/v1" "m")
                     (contexture-test-message
                         "cannot list the models of provider 127.0.0.1:1: .*; start it, or correct"
                       (call-interactively #'contexture-configure-provider)))))
        (should (= (length asked) 3))
        (should (string-match-p "127.0.0.1:1.*connection failed.*; model: " (car (last asked))))))))

(ert-deftest contexture-provider-command-asks-for-the-rest-with-a-prefix ()
  (contexture-provider-tests--with nil
    (contexture-provider-tests--serving '(("mystery" nil)) nil
      (should (equal (contexture-provider-tests--answering
                         `("openai" ,url "mine" "environment variable" "KEY"
                           "effort" "high" "temperature" 0.5
                           "headers" "X-Org=acme" "X-Org" "here" "acme" "X-Key" "command" "print it" ""
                           "" "mystery" "n")
                       (should (equal (contexture-provider--read t)
                                      `("mine" ( :kind "openai" :model "mystery"
                                                 :base-url ,url :api-key-env "KEY"
                                                 :effort "high" :temperature 0.5
                                                 :headers
                                                 ((:name "X-Org" :value "acme")
                                                  (:name "X-Key" :command "print it")))
                                        nil))))
                     (list "Kind of provider: " "Address (default https://api.openai.com/v1): "
                           (format "Name of the provider (default %s): " (substring url 7 -3))
                           "Where is the key (default auth-source): " "Variable: "
                           "Further setting (default none): " "Effort: "
                           "Further setting (default none): " "Temperature: "
                           "Further setting (default none): "
                           "Header (default no more): " "Header (default no more): "
                           "Where is its value (default here): "
                           "Value, variable or command: "
                           "Header (default no more): " "Where is its value (default here): "
                           "Value, variable or command: " "Header (default no more): "
                           "Further setting (default none): "
                           (concat "mine: the environment variable KEY is empty or not set; correct the "
                                   "provider's configuration, and try again; model: ")
                           "Save this model for later? "))))))

(ert-deftest contexture-provider-command-asks-what-a-script-needs ()
  (let ((file (locate-library "contexture-doctor.el")))
    (should (equal (contexture-provider-tests--answering (list "scripted" file "m")
                     (should (equal (contexture-provider--read)
                                    (list "scripted" (list :kind "scripted" :script file
                                                           :model "m")
                                          t))))
                   '("Kind of provider: " "File with the answers: "
                     "Model (default scripted): ")))
    ;; A folder plays nothing; that is said before the next question.
    (contexture-test-user-error "is not a regular file"
      (contexture-provider-tests--answering (list "scripted" temporary-file-directory)
        (contexture-provider--read)))))

(ert-deftest contexture-provider-that-is-removed-is-gone-from-the-server ()
  (contexture-provider-tests--with nil
    (let ((one '("one" :kind ollama :model "a" :base-url "http://localhost:1"))
          (two '("two" :kind ollama :model "b" :base-url "http://localhost:1")))
      (setq contexture-providers (list one two))
      (should (equal (contexture-provider-tests--names) '("one" "two")))
      (setq contexture-providers (list two))
      (llm-ert-wait-for (equal (contexture-provider-tests--names) '("two")))
      ;; Changed, and back again, each time it takes effect.
      (dolist (model '("c" "b"))
        (setq contexture-providers
              (list (cons "two" (plist-put (copy-sequence (cdr two)) :model model))))
        (llm-ert-wait-for
            (equal (plist-get (car (contexture-request 'list-providers)) :model) model)))
      (setq contexture-providers nil)
      (llm-ert-wait-for (null (contexture-provider-tests--names)))
      ;; What others told the server stays.
      (contexture-request 'configure-provider
                          '(:name "late" :kind :ollama :model "l" :base-url "http://localhost:1"))
      (setq contexture-providers (list one))
      (llm-ert-wait-for (member "one" (contexture-provider-tests--names)))
      (setq contexture-providers nil)
      (llm-ert-wait-for (equal (contexture-provider-tests--names) '("late"))))))

;;;; Models

(ert-deftest contexture-provider-models-complete-in-a-conversation ()
  (contexture-conversation-test-with '(("A"))
    (llm-ert-wait-for (consp contexture-conversation--providers))
    (setq contexture-conversation--models '(("play" "scripted" "scripted-large")))
    (contexture-conversation-test-type "/model scripted-")
    (completion-at-point)
    (should (equal (contexture-conversation--text) "/model scripted-large"))
    (should (string-search "of play" (contexture-conversation--annotate-model "scripted-large")))
    (should (string-search "scripted" (contexture-conversation--annotate-model "play")))
    (contexture-conversation-send)
    (should (equal (plist-get contexture-conversation--settings :provider) "play"))
    (should (equal (plist-get contexture-conversation--settings :model) "scripted-large"))))

(ert-deftest contexture-provider-models-are-asked-for-once-and-by-need ()
  (contexture-conversation-test-with '(("A"))
    (llm-ert-wait-for (consp contexture-conversation--providers))
    (should-not contexture-conversation--models)
    (contexture-conversation--ask-models)
    (llm-ert-wait-for (equal contexture-conversation--models '(("play" "model"))))
    (cl-letf (((symbol-function 'contexture-conversation--request)
               (lambda (&rest _) (error "Must not be called"))))
      (contexture-conversation--ask-models))))

(ert-deftest contexture-provider-that-another-client-adds-or-removes-is-followed ()
  (contexture-conversation-test-with '(("A"))
    (llm-ert-wait-for (consp contexture-conversation--providers))
    (cl-flet ((names () (and (listp contexture-conversation--providers)
                             (mapcar (lambda (it) (plist-get it :name))
                                     contexture-conversation--providers))))
      (contexture-request 'configure-provider
                          '(:name "late" :kind :ollama :model "llama"
                            :base-url "http://localhost:1"))
      (llm-ert-wait-for (member "late" (names)))
      (contexture-request 'remove-provider '(:name "late"))
      (llm-ert-wait-for (equal (names) '("play"))))))

;;;; The doctor

(defun contexture-provider-tests--doctor ()
  "Return what the doctor says of models."
  (contexture-request 'ping)
  (contexture-test-settle)
  (let (findings)
    (contexture-doctor--check-models (lambda (them) (setq findings them)))
    (llm-ert-wait-for findings)
    (mapcar (lambda (it) (list (car it) (nth 1 it) (or (nth 2 it) "")))
            findings)))

(ert-deftest contexture-provider-doctor-asks-each ()
  (contexture-provider-tests--with nil
    (setq contexture-providers
          (list (cons "play" (plist-put (contexture-conversation-test-provider) :model "model"))
                '("gone" :kind ollama :model "llama" :base-url "http://localhost:1")
                '("wrong" :kind "magic" :model "m")))
    (pcase-let ((`(,untold ,play ,gone) (contexture-provider-tests--doctor)))
      (should (equal (car untold) 'fail))
      (should (string-search "wrong: the server does not know it" (cadr untold)))
      (should (equal (seq-take play 2) '(ok "play: model, the default")))
      (should (equal (car gone) 'warn))
      (should (string-search "gone" (cadr gone))))))

(ert-deftest contexture-provider-doctor-offers-to-set-one-up ()
  (contexture-provider-tests--with nil
    (should (equal (seq-take (car (contexture-provider-tests--doctor)) 2)
                   '(note "No model is set up; you need one only for conversations")))))

(ert-deftest contexture-provider-doctor-knows-which-models-there-are ()
  (let ((judge (lambda (model outcome value)
                 (car (contexture-doctor--judge-provider
                       (list :name "x" :model model) outcome value)))))
    (should (eq (funcall judge "llama" 'answered '(:models ((:name "llama:latest")))) 'ok))
    (should (eq (funcall judge "llama" 'answered '(:models ((:name "qwen")))) 'warn))
    (should (eq (funcall judge "llama" 'answered '(:models nil)) 'ok))
    (should (eq (funcall judge "llama" 'silent nil) 'warn))
    (should (eq (funcall judge "llama" 'refused "the key is wrong") 'warn))))

(ert-deftest contexture-provider-doctor-says-which-address-is-silent ()
  (contexture-provider-tests--with nil
    (setq contexture-providers
          '(("gone" :kind ollama :model "llama" :base-url "http://localhost:1")))
    (contexture-provider-tests--names)
    (let ((row (car (contexture-request 'list-providers))))
      (should (equal (nth 2 (contexture-doctor--judge-provider row 'silent nil))
                     "Check that you can reach http://localhost:1.")))))

(provide 'contexture-provider-tests)
;;; contexture-provider-tests.el ends here
