;;; contexture-ert-tests.el --- Tests of what tests are written with  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What the library promises to the suites of other packages; and every
;; recorded exchange, played to the client.

;;; Code:

(require 'contexture-test-helper)

(defmacro contexture-ert-tests--failure (&rest body)
  "Return as text what BODY, which must fail as a test does, says."
  (declare (indent 0) (debug t))
  `(format "%S" (cdr (should-error (progn ,@body) :type 'ert-test-failed))))

(defun contexture-ert-tests--add (content &rest metadata)
  "Add CONTENT with METADATA to the context \"m\" and return the item."
  (contexture-request 'add-context (list :manager "m" :content content
                                         :metadata metadata)))

(defun contexture-ert-tests--exchange (&rest lines)
  "Write LINES to a file in the test's folder and return its name."
  (llm-ert-write-file "exchange.sexp"
                             (mapconcat (lambda (line) (concat line "\n")) lines "")))

;;;; Servers

(ert-deftest contexture-ert-ids-and-times-are-the-same-in-each-run ()
  (dotimes (_ 2)
    (contexture-ert-with-server
      (let ((item (contexture-ert-tests--add "x")))
        (should (equal (plist-get item :id) "ctx-1"))
        (should (= (plist-get item :timestamp) contexture-ert-time))))))

(ert-deftest contexture-ert-the-clock-can-show-another-time-or-go ()
  (contexture-ert-with-server
    :time 1234567890
    (should (= (plist-get (contexture-ert-tests--add "x") :timestamp) 1234567890)))
  (contexture-ert-with-server
    :time nil
    (should (> (plist-get (contexture-ert-tests--add "x") :timestamp)
               contexture-ert-time))))

(ert-deftest contexture-ert-passes-arguments-to-the-server ()
  (contexture-ert-with-server
    :args '("--max-items" "1")
    (contexture-ert-tests--add "x")
    (should (equal (plist-get (contexture-ert-tests--add "y") :evicted) '("ctx-1")))))

(ert-deftest contexture-ert-a-state-folder-outlives-the-server ()
  (llm-ert-with-files nil
    (dolist (count '(1 2))
      (contexture-ert-with-server
        :state "state"
        (should (= (plist-get (contexture-ert-tests--add "x") :count) count)))))
  (contexture-ert-with-server
    :state t
    (should (= (plist-get (contexture-ert-tests--add "x") :count) 1))))

(ert-deftest contexture-ert-nothing-is-left-of-a-test-that-fails ()
  (let ((processes (process-list)) (buffers (buffer-list)) folders)
    (should-error
     (llm-ert-with-files '(("a.txt" . "x"))
       (contexture-ert-with-server
         (setq folders (list llm-ert-directory contexture-ert--home))
         (contexture-request 'ping)
         (find-file-noselect "a.txt")
         (get-buffer-create "left behind")
         (make-process :name "sleep" :command '("sleep" "60"))
         (contexture-ert-stop-server)
         (setq contexture--connection nil) ; as a careless test does
         (error "Oops"))))
    (should-not (cl-set-difference (process-list) processes))
    (should-not (cl-remove-if (lambda (it) (string-prefix-p " " (buffer-name it)))
                              (cl-set-difference (buffer-list) buffers)))
    (should-not (cl-some #'file-exists-p folders))
    (should-not (cl-some (lambda (it)
                           (cl-typep (car-safe (timer--args it)) 'contexture-connection))
                         (cl-remove 'contexture--start timer-list
                                    :key #'timer--function :test-not #'eq)))))

(ert-deftest contexture-ert-the-connection-of-the-user-stays ()
  (contexture-ert-with-server
    (contexture-request 'ping)
    (let ((connection contexture--connection) (scope contexture-add-to))
      (contexture-ert-with-server
        (setq contexture-add-to 'shared)
        (contexture-request 'ping)
        (should-not (eq contexture--connection connection)))
      (llm-ert-with-files nil)
      (should (eq contexture--connection connection))
      (should (eq contexture-add-to scope))
      (should (contexture-running-p)))))

;;;; Faults

(defun contexture-ert-tests--in-batch (form)
  "Return the output of FORM in a batch Emacs with a test's server.
Fail unless that Emacs ends by itself."
  (with-temp-buffer
    (let ((status
           (call-process
            (expand-file-name invocation-name invocation-directory) nil t nil
            "-Q" "--batch" "-L" contexture--directory "-l" "contexture-ert"
            "--eval" (prin1-to-string `(contexture-ert-with-server ,form)))))
      (ert-info ((buffer-string) :prefix "Output: ")
        (should (equal status 0)))
      (buffer-string))))

(ert-deftest contexture-ert-a-server-killed-in-a-burst-of-calls-ends-no-batch-emacs ()
  (let ((contexture-ert-server-command contexture-test-binary))
    (should
     (string-search
      "survived"
      (contexture-ert-tests--in-batch
       '(progn
          (dotimes (_ 20)
            (let ((pid (contexture-ert-server-pid)))
              (dotimes (number 100)
                (when (= number 1) (signal-process pid 'SIGKILL))
                (contexture-request-async 'ping)))
            (contexture-request 'ping))
          (princ "survived")))))))

(ert-deftest contexture-ert-a-socket-that-is-closed-ends-no-batch-emacs ()
  (should
   (string-search
    "survived"
    (contexture-ert-tests--in-batch
     '(let* ((socket (concat contexture-ert--home "socket"))
             (client nil)
             (server (make-network-process
                      :name "closes" :server t :family 'local :service socket
                      :noquery t :filter (lambda (process _) (setq client process)))))
        (setq contexture--connection
              (contexture--new-connection (list :unix socket)))
        (contexture-request-async 'ping)
        (llm-ert-wait-for client)
        (delete-process server)
        (delete-process client)
        (oset contexture--connection state 'ready)
        (dotimes (_ 100) (contexture-request-async 'ping))
        (princ "survived"))))))

(ert-deftest contexture-ert-a-replay-whose-client-is-gone-ends-no-batch-emacs ()
  (llm-ert-with-files nil
    (let ((file (contexture-ert-tests--exchange
                 "> (:id 1 :method ping)" "< (:id 1 :result :pong)"
                 "< (:method \"x\")" "< (:method \"y\")")))
      (should
       (string-search
        "survived"
        (contexture-ert-tests--in-batch
         `(progn
            (contexture-ert-with-replay ,file
              :stepwise t
              (contexture-request-async 'ping nil :error #'ignore)
              (llm-ert-wait-for
                  (contexture-ert--exchange-held contexture-ert--exchange))
              (contexture-disconnect))
            (princ "survived"))))))))

(ert-deftest contexture-ert-kills-and-stops-the-server-at-once ()
  (contexture-ert-with-server
    (contexture-request 'ping)
    (let ((pid (contexture-ert-server-pid)))
      (contexture-ert-with-stopped-server
        (should (equal (alist-get 'state (process-attributes pid)) "T")))
      (contexture-ert-kill-server)
      (should-not (contexture-running-p))
      (should-not (eql pid (contexture-ert-server-pid))))))

;;;; What was said

(ert-deftest contexture-ert-messages-are-data-in-order ()
  (contexture-ert-with-server
    (contexture-request 'ping)
    (contexture-ert-tests--add "x")
    (let ((messages (llm-ert-messages)))
      (should (equal (mapcar #'car messages)
                     '(sent received sent received sent received)))
      (should (equal (delq nil (mapcar (lambda (it) (plist-get (cdr it) :method))
                                       messages))
                     '("initialize" "ping" "add-context")))
      (should (eq (plist-get (cdr (nth 3 messages)) :result) :pong)))
    (should (equal (mapcar #'car (llm-ert-calls))
                   '(initialize ping add-context)))
    (should (equal (llm-ert-calls 'ping) '(nil)))))

(ert-deftest contexture-ert-notices-calls-with-some-of-their-parameters ()
  (contexture-ert-with-server
    (contexture-request-async 'add-context
                              '(:manager "m" :content "x" :metadata (:a 1 :b (1 2))))
    (llm-ert-should-called 'add-context)
    (should (equal (plist-get (llm-ert-should-called
                               'add-context '(:content "x" :metadata (:b (1 2))))
                              :manager)
                   "m"))
    (let ((text (contexture-ert-tests--failure
                  (llm-ert-should-called 'add-context '(:content "y")))))
      (should (string-match-p "never-called add-context" text))
      (llm-ert-should-not-called 'add-context '(:content "y"))
      (let ((text (contexture-ert-tests--failure
                    (llm-ert-should-not-called 'add-context))))
        (should (string-search "called add-context :with" text)))
      (should (string-match-p ":content \"x\"" text)))
    (contexture-ert-tests--failure
      (llm-ert-should-called 'add-context '(:metadata (:a 2))))
    (contexture-ert-tests--failure (llm-ert-should-called 'undo))))

(ert-deftest contexture-ert-says-where-messages-can-be-looked-at ()
  (should (string-search
           "inside of"
           (cadr (should-error (llm-ert-should-called 'undo))))))

(ert-deftest contexture-ert-hides-a-secret ()
  (let ((llm-ert--said nil))
    (contexture-ert--note-line 'sent "hidden secret\n")
    (contexture-ert--note-line 'received "; remark")
    (contexture-ert--note-line 'received "garbage (")
    (should (equal (llm-ert-messages) '((received . "garbage ("))))))

;;;; Leaving nothing

(ert-deftest contexture-ert-a-hook-that-errs-keeps-nothing ()
  (should-not
   (llm-ert-leftovers
     (contexture-ert-with-server
       (contexture-request 'ping)
       (add-hook 'contexture-disconnected-hook (lambda () (error "Oops")))
       (get-buffer-create "some buffer")))))

(ert-deftest contexture-ert-options-of-the-user-have-no-effect ()
  (let ((old (default-toplevel-value 'contexture-resend-limit)))
    (unwind-protect
        (progn
          (customize-set-variable 'contexture-resend-limit 77)
          (contexture-ert-with-server
            (should (equal contexture-resend-limit old)))
          (let ((contexture-resend-limit 78))
            (contexture-ert-with-server
              (should (equal contexture-resend-limit 78)))))
      (set-default-toplevel-value 'contexture-resend-limit old)
      (put 'contexture-resend-limit 'customized-value nil))))

(ert-deftest contexture-ert-the-environment-has-no-effect ()
  (let ((process-environment (cons "CONTEXTURE_MAX_ITEMS=1" process-environment)))
    (contexture-ert-with-server
      (should-not (getenv "CONTEXTURE_MAX_ITEMS")))))

(ert-deftest contexture-ert-without-a-server-skips-or-fails ()
  (let ((contexture-ert-server-command "/nonexistent/program")
        (test (make-ert-test :body (lambda () (contexture-ert-with-server)))))
    (let ((process-environment (cons "CI" process-environment)))
      (should (ert-test-skipped-p (ert-run-test test))))
    (let ((process-environment (cons "CI=true" process-environment)))
      (should (ert-test-failed-p (ert-run-test test))))))

(defun contexture-ert-tests--an-hour-later ()
  "Add two items, an hour apart, and return their times."
  (let ((first (plist-get (contexture-ert-tests--add "x") :timestamp)))
    (contexture-ert-move-clock 3600)
    (list first (plist-get (contexture-ert-tests--add "y") :timestamp))))

(ert-deftest contexture-ert-moves-the-clock ()
  (let ((times (list contexture-ert-time (+ contexture-ert-time 3600))))
    (contexture-ert-with-server
      (let ((pid (contexture-ert-server-pid)))
        (should (equal (contexture-ert-tests--an-hour-later) times))
        (should (= (contexture-ert-server-pid) pid))))
    (contexture-ert-with-server
      (contexture-ert-move-clock 60)
      (should (= (plist-get (contexture-ert-tests--add "x") :timestamp)
                 (+ contexture-ert-time 60))))
    (contexture-ert-with-server
      :time nil
      (should-error (contexture-ert-move-clock 1)))
    (llm-ert-with-files nil
      (let ((file (concat llm-ert-directory "x.sexp")))
        (dolist (llm-ert-record '(t nil))
          (contexture-ert-with-replay file
            (should (equal (contexture-ert-tests--an-hour-later) times))))))))

(ert-deftest contexture-ert-a-failure-shows-the-conversation ()
  (let* ((result
          (ert-run-test
           (make-ert-test
            :body (lambda ()
                    (llm-ert-with-model '("Because.")
                      (contexture-ert-with-server
                        (contexture-request 'open-session '(:name "s"))
                        (contexture-request 'chat '(:session "s" :content "Why?"))
                        (ert-fail "something")))))))
         (text (mapconcat #'cdr (ert-test-result-with-condition-infos result) "")))
    (should (string-match-p "^  > (:id 1 :method \"open-session\"" text))
    (should (string-match-p "^  < (:id .*Because" text))
    (should (string-match-p "^The model was shown:\n  (:prompt \"Why\\?\"" text))))

(ert-deftest contexture-ert-awaits-a-message-by-a-pattern ()
  (contexture-ert-with-server
    (contexture-watch #'ignore)
    (contexture-ert-tests--add "x")
    (should (equal (plist-get (plist-get (llm-ert-await
                                          '(:method context-changed))
                                         :params)
                              :manager)
                   "m"))
    (should (llm-ert-await '(:method add-context :params (:content "x")) 'sent))
    (let* ((llm-ert-timeout 0.02)
           (text (contexture-ert-tests--failure
                   (llm-ert-await '(:method progress)))))
      (should (string-search "context-changed" text)))))

;;;; Files

(ert-deftest contexture-ert-files-are-a-project-of-their-own ()
  (let (folder)
    (llm-ert-with-files '(("src/a.el" . "λ\n") ("empty/"))
      (setq folder llm-ert-directory)
      (should (equal default-directory folder))
      (with-current-buffer (find-file-noselect "src/a.el")
        (should (equal (buffer-string) "λ\n"))
        (should (equal (project-root (project-current)) folder))
        (should (equal (contexture--project-root) folder)))
      (should (file-directory-p "empty"))
      (should-error (llm-ert-write-file "../b" "x")))
    (should-not (file-exists-p folder)))
  (llm-ert-with-files nil
    :project nil
    (should-not (project-current))))

;;;; Exchanges

(ert-deftest contexture-ert-records-what-it-replays ()
  (llm-ert-with-files '(("b.txt" . "b\n"))
    (let* ((file (llm-ert-write-file "x.sexp" "; A remark.\n> old\n"))
           (body (lambda ()
                   (contexture-watch #'ignore)
                   (contexture-request 'ping)
                   (contexture-request 'add-file
                                       (list :path (expand-file-name "b.txt")))))
           (item (contexture-ert-with-recording file (funcall body)))
           (text (contexture-ert-tests--text file)))
      (should (string-prefix-p "; A remark.\n> (" text))
      (dolist (part '("token-counters" "request-key" "> old" "initialize"))
        (should-not (string-search part text)))
      (should-not (string-search llm-ert-directory text))
      (should (string-search "< (:method \"context-changed\"" text))
      (let ((contexture-ert-server-command "/nonexistent/program"))
        (should (equal (contexture-ert-with-replay file (funcall body)) item))
        (llm-ert-with-files nil  ; in another folder
          (should (equal (plist-get (plist-get (contexture-ert-with-replay file
                                                 (funcall body))
                                               :metadata)
                                    :filename)
                         (expand-file-name "b.txt")))))
      (let ((llm-ert-record t))
        (contexture-ert-with-replay file (contexture-request 'ping))
        (should-error (contexture-ert-with-replay file (error "Oops"))))
      (contexture-ert-with-replay file
        (should (eq (contexture-request 'ping) :pong))))))

(ert-deftest contexture-ert-a-replay-does-not-mind-the-order-of-keys ()
  (llm-ert-with-files nil
    (contexture-ert-with-replay
        (contexture-ert-tests--exchange
         "> (:id 7 :method undo :params (:manager \"m\" :x (:a 1 :b nil)))"
         "< (:id 7 :result 1)")
      (should (= (contexture-request 'undo '(:x (:a 1) :manager "m")) 1)))))

(ert-deftest contexture-ert-a-replay-fails-where-it-differs ()
  (llm-ert-with-files nil
    (let* ((file (contexture-ert-tests--exchange
                  "; one" "> (:id 1 :method ping)" "< (:id 1 :result :pong)"
                  "> (:id 2 :method undo)" "< (:id 2 :result 2)"))
           (unsaid (contexture-ert-tests--failure
                     (contexture-ert-with-replay file (contexture-request 'ping))))
           (other (contexture-ert-tests--failure
                    (contexture-ert-with-replay file
                      (ignore-errors (contexture-request 'redo))))))
      (should (string-match-p
               "exchange.sexp:4: never said: (:id 2 :method undo)" unsaid))
      (should (string-match-p
               "exchange.sexp:2: next comes .*ping.*, but Emacs said .*redo" other))
      (should (string-match-p
               "exchange.sexp: the recording ends here, but Emacs said .*redo"
               (cadr (should-error (contexture-ert-with-replay file
                                     (contexture-request 'ping)
                                     (contexture-request 'undo)
                                     (contexture-request 'redo))
                                   :type 'contexture-error)))))
    (should-error (contexture-ert-with-replay (contexture-ert-tests--exchange "x")))))

;;;; Recordings that are the same twice

(defun contexture-ert-tests--text (file)
  "Return what FILE has."
  (with-temp-buffer (insert-file-contents file) (buffer-string)))

(defun contexture-ert-tests--talk ()
  "Make calls, some at the same time, and talk with a model."
  (contexture-watch #'ignore)
  (let ((left 4))
    (dotimes (number 4)
      (contexture-request-async
       'add-item (list :manager "m" :content (format "item %d" number)
                       :metadata (list :project (directory-file-name
                                                 llm-ert-directory)))
       :success (lambda (_) (cl-decf left))))
    (contexture-request 'ping)
    (contexture-request 'open-session '(:name "s"))
    (let (answer)
      (contexture-request-async 'chat '(:session "s" :content "Why?")
                                :success (lambda (it) (setq answer it)))
      (contexture-request-async 'list-items '(:count-only t :manager "m"))
      (llm-ert-wait-for answer))
    (llm-ert-wait-for (= left 0))))

(ert-deftest contexture-ert-recordings-are-the-same-twice ()
  (let (texts)
    (dotimes (_ 5)
      (llm-ert-with-files nil
        (let ((file (concat llm-ert-directory "new/x.sexp")))
          (llm-ert-with-model '(("Be" "cause."))
            (contexture-ert-with-recording file (contexture-ert-tests--talk)))
          (push (contexture-ert-tests--text file) texts)
          (contexture-ert-with-replay file (contexture-ert-tests--talk)))))
    (should (string-search ":project \"/contexture-ert\"" (car texts)))
    (should (string-search "> (:id 1 :method \"add-item\"" (car texts)))
    (should (equal (delete-dups texts) (list (car texts))))))

(ert-deftest contexture-ert-recordings-have-the-news-of-a-long-call-behind-its-answer ()
  (let* ((asked '(sent "(:id 1 :method \"add-tree\")"))
         (progress '(received "(:method \"progress\" :params (:id 1 :files 2))"))
         (answer '(received "(:id 1 :result (:version 5))"))
         (news '(received "(:method \"session-changed\" :params (:session \"s\" :version 5))"))
         (next '(sent "(:id 2 :method \"undo\")"))
         (subscribed '((sent "(:id 0 :method \"subscribe\" :params (:topics (\"session-changed\")))"))))
    (dolist (order (list (list asked progress answer news next)
                         (list asked progress news answer next)
                         (list asked news progress answer next)
                         (list asked progress answer next news)))
      (should (equal (contexture-ert--recordable (append subscribed order))
                     (list asked progress answer news next))))))

(ert-deftest contexture-ert-recordings-have-news-with-the-call-of-the-method-they-name ()
  (let* ((subscribed '(sent "(:id 0 :method \"subscribe\" :params (:topics (\"session-changed\")))"))
         (chat '(sent "(:id 1 :method \"chat\")"))
         (progress '(received "(:method \"progress\" :params (:id 1 :kind :approval))"))
         (approve '(sent "(:id 2 :method \"approve\")"))
         (approved '(received "(:id 2 :result nil)"))
         (news '(received "(:method \"session-changed\" :params (:method \"chat\" :version 9))"))
         (answer '(received "(:id 1 :result (:version 12))")))
    (dolist (order (list (list approved news) (list news approved)))
      (should (equal (contexture-ert--recordable
                      `(,subscribed ,chat ,progress ,approve ,@order ,answer))
                     (list chat progress approve approved answer news))))))

;; What a test waited for stands before what it did then.
(ert-deftest contexture-ert-a-replay-approves-what-a-notification-asks ()
  (llm-ert-with-files nil
    (let ((file (concat llm-ert-directory "x.sexp")))
      (llm-ert-with-model '((call "list_context" nil) "Empty.")
        (dolist (llm-ert-record '(t nil))
          (contexture-ert-with-replay file
            (let (answer)
              (contexture-watch
               (lambda (method params)
                 (when (and (eq method 'approvals-changed) (plist-get params :open))
                   (contexture-request-async
                    'approve (list :approval (plist-get params :approval) :decision :once))))
               '(approvals-changed))
              (contexture-request 'open-session '(:name "s"))
              (contexture-request-async 'chat '(:session "s" :content "What?" :tools t)
                                        :success (lambda (it) (setq answer it)))
              (llm-ert-wait-for answer)
              (should (equal (plist-get answer :content) "Empty.")))))))))

;; Each run makes another number of calls that no recording has.
(ert-deftest contexture-ert-ids-in-data-are-numbered-too ()
  (llm-ert-with-files nil
    (let ((file (concat llm-ert-directory "x.sexp")) texts)
      (cl-flet ((talk (pings)
                  (dotimes (_ pings) (contexture-request 'ping))
                  (let* ((id (contexture-request-async
                              'add-item '(:manager "m" :content "a")))
                         (text (format "call %d" id))
                         (metadata (list :call id :size 7 :list (list id 7)))
                         (item (contexture-request
                                'add-item (list :manager "m" :content text
                                                :metadata metadata))))
                    (should (equal (plist-get item :content) text))
                    (should (equal (plist-get item :metadata) metadata)))))
        (dotimes (pings 3)
          (contexture-ert-with-recording file (talk pings))
          (push (contexture-ert-tests--text file) texts)
          (contexture-ert-with-replay file (talk (* 2 pings))))
        (should (string-search ":call 7000001 :size 7" (car texts)))
        (should (equal (delete-dups texts) (list (car texts))))))))

(ert-deftest contexture-ert-recordings-have-no-news-from-before-the-subscription ()
  (llm-ert-with-files nil
    (let ((file (concat llm-ert-directory "x.sexp")))
      (dotimes (_ 10)
        (contexture-ert-with-recording file
          (contexture-ert-tests--add "before")
          (contexture-request-async 'add-item '(:manager "m" :content "just before"))
          (contexture-watch #'ignore)
          (contexture-ert-tests--add "after")
          (llm-ert-await '(:method context-changed :params (:count 3))))
        (let ((text (contexture-ert-tests--text file)))
          (should (string-search ":params (:manager \"m\" :method \"add-item\" :count 3"
                                 text))
          (should-not (string-match-p "context-changed.*:count [12]" text)))))))

(ert-deftest contexture-ert-recordings-take-arguments-of-the-server ()
  (llm-ert-with-files nil
    (let ((file (concat llm-ert-directory "x.sexp")))
      (dolist (llm-ert-record '(t nil))
        (contexture-ert-with-replay file
          :args '("--max-items" "1")
          (contexture-ert-tests--add "x")
          (should (equal (plist-get (contexture-ert-tests--add "y") :evicted)
                         '("ctx-1"))))))))

(ert-deftest contexture-ert-a-replay-numbers-progress-and-cancelling ()
  (llm-ert-with-files nil
    (let ((file (contexture-ert-tests--exchange
                 "> (:id 41 :method chat)"
                 "< (:method \"progress\" :params (:id 41 :text \"a\"))"
                 "> (:method \"cancel\" :params (:id 41))"
                 "> (:id 42 :method cancel :params (:id 41))"
                 "< (:id 42 :result (:cancelled nil))")))
      (contexture-ert-with-replay file
        (contexture-watch #'ignore)
        (let ((id (contexture-request-async 'chat nil :error #'ignore)))
          (llm-ert-await (list :method 'progress :params (list :id id)))
          (contexture--cancel contexture--connection id)
          (should (contexture-request 'cancel (list :id id))))))))

(ert-deftest contexture-ert-a-replay-shows-the-difference ()
  (llm-ert-with-files nil
    (let* ((file (contexture-ert-tests--exchange
                  "> (:id 1 :method add-item :params (:content \"a\" :metadata (:x 1 :y 2)))"
                  "< (:id 1 :result nil)" "> (:id 2 :method undo)"))
           (changed (contexture-ert-tests--failure
                      (contexture-ert-with-replay file
                        (ignore-errors
                          (contexture-request
                           'add-item '(:content "b" :metadata (:x 1 :y 3)))))))
           (early (contexture-ert-tests--failure
                    (contexture-ert-with-replay file
                      (ignore-errors (contexture-request 'undo))))))
      (should (string-match-p ":content: recorded .*\"a.*\", now .*\"b" changed))
      (should (string-match-p ":metadata :y: recorded 2, now 3" changed))
      (should (string-match-p "which the recording has in line 3" early)))))

;; The command runs this test inside of another one.
(defvar contexture-ert-tests--file nil
  "File of the exchange that is recorded again.")

(ert-deftest contexture-ert-records-again ()
  (llm-ert-with-files nil
    (let* ((contexture-ert-tests--file
            (contexture-ert-tests--exchange "; Said before." "> (:id 1 :method undo)"))
           (test (make-ert-test
                  :name 'contexture-ert-tests--again
                  :body (lambda ()
                          (contexture-ert-with-replay contexture-ert-tests--file
                            (contexture-ert-tests--add "x")))))
           (inhibit-message t))
      (should (ert-test-failed-p (ert-run-test test)))
      (should (= 1 (ert-stats-completed-expected (llm-ert-record-again test))))
      (should (string-prefix-p "; Said before.\n> (:id 1 :method \"add-context\""
                               (contexture-ert-tests--text contexture-ert-tests--file)))
      (should (ert-test-passed-p (ert-run-test test))))))

;;;; The recorded exchanges of tests/wire

(defun contexture-ert-tests--play (entry)
  "Say what ENTRY of an exchange has, as the client says it.
What it would never say is written as it stands.  Return the pair of
the recorded id and the answer, or nil."
  (let* ((message (contexture-ert--decode (cadr entry)))
         (method (plist-get message :method))
         (params (plist-get message :params))
         answer)
    (cond ((null method)
           (contexture--write contexture--connection nil (concat (cadr entry) "\n"))
           nil)
          ((plist-member message :id)
           (contexture-request-async
            (intern (format "%s" method)) params
            :success (lambda (result) (setq answer (list :result result)))
            :error (lambda (problem) (setq answer (list :error problem))))
           (llm-ert-wait-for answer)
           (cons (plist-get message :id) answer))
          (t (contexture-notify (intern (format "%s" method)) params)
             nil))))

(defun contexture-ert-tests--check (entry answers)
  "Check that the client understood ENTRY, what the server said.
ANSWERS maps the id of a call to what its caller was told."
  (let* ((message (contexture-ert--decode (cadr entry)))
         (answer (assoc (plist-get message :id) answers)))
    (ert-info ((cadr entry) :prefix "Line: ")
      (if answer
          (should (equal (cdr answer) (cddr message)))
        (llm-ert-wait-for
            (member (cons 'received message) (llm-ert-messages)))))))

(defun contexture-ert-tests--play-file (file)
  "Play the exchange in FILE, and check what the client makes of it.
Return how many lines of the server were checked."
  (let* ((entries (contexture-ert--exchange-entries
                   (contexture-ert--read-exchange file nil)))
         (received (cl-remove 'sent entries :key #'car))
         (news (cl-remove-if-not (lambda (entry)
                                   (string-prefix-p "(:method" (cadr entry)))
                                 received))
         heard)
    (contexture-ert-with-replay file
      (contexture-watch (lambda (&rest it) (push it heard)))
      (contexture--start contexture--connection)
      (llm-ert-wait-for (contexture-running-p))
      (let (answers)
        (dolist (entry entries)
          (if (eq (car entry) 'sent)
              (push (contexture-ert-tests--play entry) answers)
            (contexture-ert-tests--check entry answers))))
      (llm-ert-wait-for (= (length heard) (length news)))
      (should (= (cl-count 'received (llm-ert-messages) :key #'car)
                 (+ (length received) 2)))) ; and the client's own two calls
    (length received)))

(ert-deftest contexture-ert-replays-every-recorded-exchange ()
  (let ((files (directory-files
                (expand-file-name "tests/wire" contexture-test-root)
                t "\\.sexp\\'")))
    (should (>= (length files) 5))
    (dolist (file files)
      (ert-info ((file-name-nondirectory file) :prefix "Exchange: ")
        (should (> (contexture-ert-tests--play-file file) 0))))))

(provide 'contexture-ert-tests)
;;; contexture-ert-tests.el ends here
