;;; contexture-conversation-tool-tests.el --- Tests of tools and approvals  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; A model that wants to use tools on the context: what is shown of it,
;; and what happens when the user allows that, refuses it, or does
;; something else.  The server is real, and so is its model, which follows
;; a script.

;;; Code:

(require 'contexture-conversation-test-helper)

(defconst contexture-conversation-tool-tests--add
  '(("Let me note that." (call "add_text" "{\"content\": \"(car x)\"}")) ("Noted."))
  "A model that adds a text, and then says so.")

(defmacro contexture-conversation-tool-tests--with (answers &rest body)
  "Run BODY in a conversation whose model says ANSWERS and is offered tools."
  (declare (indent 1) (debug t))
  `(contexture-conversation-test-with ,answers
     (contexture-conversation-tools 'on)
     (llm-ert-wait-for (plist-get contexture-conversation--tool-settings :tools))
     ,@body))

(defun contexture-conversation-tool-tests--ask (text)
  "Ask TEXT, and wait until the model wants to use a tool."
  (contexture-conversation-test-type text)
  (contexture-conversation-send)
  (contexture-conversation-test-await-request)
  (goto-char (point-max)))

(defun contexture-conversation-tool-tests--contents ()
  "Return the texts of the items of the context."
  (mapcar (lambda (it) (plist-get it :content)) (contexture-test-items contexture-context)))

;;;; Deciding

(ert-deftest contexture-conversation-tool-is-asked-for-and-allowed-once ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (let ((shown (contexture-conversation-test-shown)))
      (should (string-match-p "Let me note that\\.\n  calls add_text" shown))
      (should (string-match-p "^The model wants to use add_text: .*\n  In no project\n  {\n" shown))
      (should (string-search "(car x)" shown))
      (should (string-suffix-p "  [y] once  [a] always  [n] refuse\n" shown)))
    (should (equal (contexture-conversation--mode-line-state) ":approve?"))
    (should (string-search "approve? C-c C-y" (contexture-conversation-test-header)))
    (should-not (contexture-conversation-tool-tests--contents))
    (contexture-conversation-approve 'once)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-tool-tests--contents) '("(car x)")))
    (let ((shown (contexture-conversation-test-shown)))
      (should-not (string-search "[y] once" shown))
      (should (string-search "  add_text: allowed once\n" shown))
      (should (string-match-p "add_text: done" shown))
      (should (string-match-p "\nNoted\\.\n[0-9]+ tokens in" shown)))
    (should (equal (contexture-conversation--mode-line-state) ""))
    (should (equal (mapcar #'car (contexture-conversation-test-log))
                   '(:user :assistant :tool :assistant)))))

(ert-deftest contexture-conversation-tool-that-is-refused-is-not-used ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-conversation-refuse)
    (contexture-conversation-test-wait)
    (should-not (contexture-conversation-tool-tests--contents))
    (should (string-search "  add_text: refused\n" (contexture-conversation-test-shown)))
    (should (string-match-p "\nNoted\\.\n" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tool-that-is-always-allowed-asks-no-more ()
  (contexture-conversation-tool-tests--with
      (append contexture-conversation-tool-tests--add contexture-conversation-tool-tests--add)
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-conversation-approve-always)
    (contexture-conversation-test-wait)
    (llm-ert-wait-for (equal (plist-get contexture-conversation--tool-settings :allowed-tools)
                                    '("add_text")))
    (contexture-conversation-test-send "Once more")
    (should (= (length (contexture-conversation-tool-tests--contents)) 2))
    (contexture-conversation-test-send "/tools")
    (should (string-match-p "  add_text +without asking" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tool-keys-work-on-the-block-and-nowhere-else ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-conversation-test-goto "[y] once")
    (dolist (pair '(("y" . contexture-conversation-approve-once)
                    ("a" . contexture-conversation-approve-always)
                    ("n" . contexture-conversation-refuse)
                    ("v" . contexture-conversation-view-approval)))
      (should (eq (key-binding (kbd (car pair))) (cdr pair))))
    (should (eq (get-text-property (point) 'contexture-decision) 'once))
    (goto-char (point-max))
    (should (eq (key-binding "y") 'self-insert-command))
    (contexture-conversation-test-goto "The model wants")
    (call-interactively (key-binding "n"))
    (contexture-conversation-test-wait)
    (should-not (contexture-conversation-tool-tests--contents))))

(ert-deftest contexture-conversation-tool-block-cannot-be-edited ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-conversation-test-goto "The model wants")
    (should-error (delete-char 1) :type 'text-read-only)
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)))

(ert-deftest contexture-conversation-tool-that-waits-leaves-typing-alone ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-test-type "Note it")
    (contexture-conversation-send)
    (insert "mean")
    (contexture-conversation-test-await-request)
    (insert "while")
    (should (equal (contexture-conversation--text) "meanwhile"))
    (should (= (point) (point-max)))
    (contexture-test-user-error "still being answered" (contexture-conversation-send))
    (contexture-conversation-approve 'once)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation--text) "meanwhile"))))

(ert-deftest contexture-conversation-tool-is-decided-from-the-prompt ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (should (eq (key-binding (kbd "C-c C-y")) #'contexture-conversation-approve))
    (cl-letf (((symbol-function 'read-char-choice) (lambda (&rest _) ?y)))
      (call-interactively #'contexture-conversation-approve))
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-tool-tests--contents) '("(car x)")))))

(ert-deftest contexture-conversation-tool-cancelled-turn-asks-no-more ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-conversation-cancel)
    (contexture-conversation-test-wait)
    (should-not contexture-conversation--approvals)
    (should-not (string-search "[y] once" (contexture-conversation-test-shown)))
    (should (string-search "add_text: not decided" (contexture-conversation-test-shown)))
    (should-not (contexture-conversation-tool-tests--contents))
    (contexture-test-user-error "No request is waiting"
      (contexture-conversation-approve 'once))))

(ert-deftest contexture-conversation-tool-is-told-to-be-allowed-once-the-server-agrees ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-request 'ping)
    (contexture-ert-with-stopped-server
      (contexture-conversation-approve 'once)
      (should (string-search "  add_text: allowing it once...\n"
                             (contexture-conversation-test-shown)))
      (should-not (string-search "[y] once" (contexture-conversation-test-shown)))
      (should-not (string-search "approve?" (contexture-conversation-test-header)))
      (contexture-test-user-error "No request is waiting"
        (contexture-conversation-approve 'once)))
    (contexture-conversation-test-wait)
    (should (string-search "  add_text: allowed once\n" (contexture-conversation-test-shown)))
    (should-not (string-search "allowing it" (contexture-conversation-test-shown)))))

(defconst contexture-conversation-tool-tests--unknown
  '(((progress ( :kind :approval :approval 99 :tool "add_text"
                 :arguments "{\"content\": \"x\"}" :text "add a text"))
     (step cancelled) (error -32800 "cancelled")))
  "A model that asks what the server, which is real, knows nothing of.")

(ert-deftest contexture-conversation-tool-decided-too-late-is-not-told-to-be-allowed ()
  (contexture-conversation-test-played contexture-conversation-tool-tests--unknown
    (contexture-conversation-tool-tests--ask "Note it")
    (contexture-conversation-approve 'once)
    (llm-ert-wait-for
        (string-search "  add_text: not decided; the server no longer waits for a decision\n"
                       (contexture-conversation-test-shown)))
    (should-not contexture-conversation--approvals)
    (should-not (string-search "allowed" (contexture-conversation-test-shown)))
    (contexture-conversation-cancel)
    (llm-ert-go-on 'cancelled)
    (contexture-conversation-test-wait)))

(ert-deftest contexture-conversation-tool-decision-that-cannot-be-told-is-asked-for-again ()
  (contexture-conversation-test-played contexture-conversation-tool-tests--unknown
    (contexture-conversation-tool-tests--ask "Note it")
    (let ((before (contexture-conversation-test-shown)))
      (cl-letf (((symbol-function 'contexture-request-async)
                 (lambda (&rest _) (user-error "Too much waits"))))
        (contexture-conversation-approve 'always))
      (should (string-prefix-p before (contexture-conversation-test-shown)))
      (should (string-search "Error: Too much waits" (contexture-conversation-test-shown)))
      (contexture-conversation-test-goto "[y] once")
      (should (eq (key-binding "y") #'contexture-conversation-approve-once))
      (should (= (length contexture-conversation--approvals) 1)))
    (contexture-conversation-cancel)
    (llm-ert-go-on 'cancelled)
    (contexture-conversation-test-wait)
    (should (string-search "add_text: not decided\n" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tool-is-asked-for-again-after-the-server-was-killed ()
  (contexture-conversation-tool-tests--with (cons (car contexture-conversation-tool-tests--add)
                                                  contexture-conversation-tool-tests--add)
    (contexture-conversation-tool-tests--ask "Note it")
    (let ((before (car contexture-conversation--approvals)))
      (contexture-ert-kill-server t)
      (llm-ert-wait-for (and contexture-conversation--approvals
                                    (not (eq before (car contexture-conversation--approvals)))))
      (contexture-conversation-test-await-request)
      (should (= (length contexture-conversation--approvals) 1))
      (contexture-test-user-error "have already decided"
        (contexture-conversation--rule before 'always)))
    (contexture-conversation-approve 'once)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-tool-tests--contents) '("(car x)")))
    (should (string-match-p "\nNoted\\.\n" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tool-several-are-decided-one-by-one ()
  (contexture-conversation-tool-tests--with
      '(("Two." (call "add_text" "{\"content\": \"one\"}")
         (call "add_text" "{\"content\": \"two\"}"))
        ("Done."))
    (contexture-conversation-tool-tests--ask "Note both")
    (contexture-conversation-approve 'refuse)
    (contexture-conversation-test-await-request)
    (contexture-conversation-approve 'once)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-tool-tests--contents) '("two")))))

(ert-deftest contexture-conversation-tool-decisions-are-on-the-request-that-was-asked-about ()
  (contexture-conversation-tool-tests--with
      '(("One." (call "add_text" "{\"content\": \"one\"}"))
        ("Two." (call "add_text" "{\"content\": \"two\"}"))
        ("Done."))
    (contexture-conversation-tool-tests--ask "Note both")
    (should-not truncate-partial-width-windows)
    (goto-char (point-max))
    ;; Somebody else refuses the request while the question stands; another one comes.
    (cl-letf* ((first (car contexture-conversation--approvals))
               ((symbol-function 'read-char-choice)
                (lambda (&rest _)
                  (contexture-conversation--rule first 'refuse)
                  (llm-ert-wait-for
                      (and contexture-conversation--approvals
                           (not (memq first contexture-conversation--approvals))))
                  ?y)))
      (should-error (call-interactively #'contexture-conversation-approve) :type 'user-error))
    (contexture-conversation-refuse)
    (contexture-conversation-test-wait)
    (should-not (contexture-conversation-tool-tests--contents))))

(ert-deftest contexture-conversation-tool-wanting-much-shows-the-beginning ()
  (contexture-conversation-tool-tests--with
      `(("Long." (call "add_text" ,(format "{\"content\": %s}"
                                           (json-encode-string (make-string 5000 ?x)))))
        ("Done."))
    (contexture-conversation-tool-tests--ask "Note much")
    (should (string-search "v shows all of it" (contexture-conversation-test-shown)))
    (goto-char (point-min))
    (should (< (- (progn (contexture-conversation-test-goto "v shows all") (point))
                  (progn (contexture-conversation-test-goto "The model wants") (point)))
               600))
    ;; What was not shown is not allowed by mistake.
    (dolist (decision '(once always))
      (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
        (should-error (contexture-conversation-approve decision) :type 'user-error)))
    ;; Nor what was only opened: its end counts.
    (contexture-conversation-view-approval)
    (with-current-buffer contexture-conversation-approval-buffer
      (should (string-search (make-string 5000 ?x) (buffer-string)))
      (should-not truncate-lines)
      (should-not truncate-partial-width-windows)
      (run-hooks 'pre-command-hook)
      (should (< contexture--shown (point-max))))
    (cl-letf (((symbol-function 'y-or-n-p) #'ignore))
      (should-error (contexture-conversation-approve 'once) :type 'user-error))
    (contexture-conversation-test-read-approval)
    (contexture-conversation-approve 'once)
    (contexture-conversation-test-wait)
    (should (equal (contexture-conversation-tool-tests--contents) (list (make-string 5000 ?x))))))

(ert-deftest contexture-conversation-tool-wanting-is-decided-where-all-of-it-is-shown ()
  "What a request hides above, below or beside the window is not allowed by mistake."
  (contexture-conversation-tool-tests--with
      `(("Lines." (call "add_text" ,(json-encode `((content . ,(concat "echo hi" (make-string 2 ?\n) "rm x"))))))
        ("Done."))
    (contexture-conversation-tool-tests--ask "Note lines")
    (switch-to-buffer (current-buffer))
    (let ((approval (car contexture-conversation--approvals)) (asked 0))
      (cl-letf (((symbol-function 'y-or-n-p) (lambda (&rest _) (ignore (cl-incf asked)))))
        (dolist (start (list (contexture-conversation--approval-to approval)
                             (1+ (contexture-conversation--approval-from approval))
                             (point-min)))
          (when (eq start (point-min))
            (let ((inhibit-read-only t))
              (goto-char start)
              (insert (make-string 40 ?\n))))
          (set-window-start nil start)
          (should-error (contexture-conversation-approve 'once) :type 'user-error))
        (should (= asked 3))
        (set-window-start nil (contexture-conversation--approval-from approval))
        (contexture-conversation-approve 'once)
        (should (= asked 3))))
    (contexture-conversation-test-wait)))

;; What a request says, where it reaches, and what it gives, in all lengths: what
;; the block leaves out counts as unseen.
(ert-deftest contexture-conversation-tool-wanting-leaves-nothing-out-silently ()
  (contexture-conversation-tool-tests--with '(("A."))
    (cl-flet ((words (name count) (mapconcat (lambda (number) (format "%s%dx" name number))
                                             (number-sequence 1 count) " ")))
      (dolist (text (list "add it" (words "text" 12) (words "text" 60) (words "text" 3000)))
        (dolist (outside (list nil "/etc/hosts" (concat "/" (string-replace " " "/" (words "at" 500)))))
          (dolist (arguments (list "{}" "{\"a\": \"b\"}"
                                   (format "{\"a\": \"%s\"}" (words "wide" 60))
                                   (format "[%s]" (string-replace " " "\", \""
                                                                  (format "\"%s\"" (words "long" 40))))
                                   (format "{\"a\": \"%s\"}" (words "much" 9000))))
            (contexture-conversation--draw-approval
             (list :approval 7 :tool "add_file" :text text :outside outside :arguments arguments))
            (let* ((approval (car (last contexture-conversation--approvals)))
                   (block (buffer-substring-no-properties
                           (contexture-conversation--approval-from approval)
                           (contexture-conversation--approval-to approval)))
                   (has (lambda (shown)
                          (cl-every (lambda (word) (string-search word shown))
                                    (split-string (concat text " " outside " " arguments)
                                                  "[^a-z0-9]+" t)))))
              (when outside
                (should (string-search (format "\nOutside the project: %s\n" outside) block)))
              (should (eq (not (contexture-conversation--approval-cut approval))
                          (and (funcall has block) t)))
              ;; Not even one that a window shows is decided on without a question.
              (set-window-buffer nil (current-buffer))
              (set-window-start nil (contexture-conversation--approval-from approval))
              (contexture--note-shown)
              (when (contexture-conversation--approval-seen approval)
                (should (funcall has block)))
              (goto-char (contexture-conversation--approval-from approval))
              (save-window-excursion
                (contexture-conversation-view-approval)
                (should (funcall has (with-current-buffer contexture-conversation-approval-buffer
                                       (buffer-string))))
                (contexture-conversation-test-read-approval))
              (should (contexture-conversation--approval-seen approval))
              ;; As long as there is something to decide, a timer looks what is shown.
              (dolist (wanted '(t nil))
                (should (eq wanted (and contexture--note-shown-functions t)))
                (should (eq wanted (and (buffer-local-value 'contexture--note-shown-functions
                                                            (get-buffer
                                                             contexture-conversation-approval-buffer))
                                        t)))
                (when wanted
                  (contexture-conversation--settle-approval approval "done"))))))))))

;; In a text from right to left, "cp A B" reads as "cp B A".
(ert-deftest contexture-conversation-tool-wanting-is-decided-in-its-order ()
  (contexture-conversation-tool-tests--with '(("A."))
    (pcase-dolist (`(,text ,outside ,arguments)
                   '(("cp \u05d0 \u05d1" nil "{}") ("copy" "/\u0628/1/\u062a" "{}")
                     ("copy" nil "{\"a\": \"cp \u05d0 \u05d1\"}")))
      (contexture-conversation--draw-approval
       (list :approval 7 :tool "t" :text text :outside outside :arguments arguments))
      (let ((approval (car contexture-conversation--approvals)))
        (should (contexture-conversation--approval-cut approval))
        (goto-char (contexture-conversation--approval-from approval))
        (save-window-excursion
          (contexture-conversation-view-approval)
          (with-current-buffer contexture-conversation-approval-buffer
            (should-not bidi-display-reordering)))
        (contexture-conversation--settle-approval approval "done")))))

(ert-deftest contexture-conversation-tool-wanting-in-full-holds-nobody ()
  "All of a long request can be looked at within a moment."
  (contexture-conversation-tool-tests--with '(("A."))
    (dolist (arguments
             (list (make-string 999990 ?\[)
                   (concat "[" (make-string 999990 ?,))
                   (concat "{\"a\":" (make-string 990000 ?\n) "1}")
                   (concat "{\"a\":\"" (apply #'concat (make-list 490000 "\\n")) "\"}")
                   (concat "{\"a\":\"" (make-string 990000 ?x) "\"}")
                   (concat "{\"a\":\"" (apply #'concat (make-list 300000 "\u05d0 ")) "\"}")
                   (list :a (make-list 200000 'x))))
      (contexture-conversation--draw-approval
       (list :approval 7 :tool "t" :text "call it" :arguments arguments))
      (let ((approval (car contexture-conversation--approvals))
            (gc-cons-threshold most-positive-fixnum)
            (before (contexture-test-busy-seconds)))
        (goto-char (contexture-conversation--approval-from approval))
        (save-window-excursion
          (contexture-conversation-view-approval)
          (should (< (- (contexture-test-busy-seconds) before) 1))
          (with-current-buffer contexture-conversation-approval-buffer
            (goto-char (point-min))
            (while (not (eobp))
              (should (<= (- (line-end-position) (point)) contexture--longest-asked-line))
              (forward-line))
            ;; Nothing but space is left out.
            (cl-flet ((signs (text) (length (string-replace
                                             " " "" (string-replace
                                                     "\\n" "" (string-replace "\n" "" text))))))
              (should (= (signs (concat "t: call it" (if (stringp arguments) arguments
                                                            (prin1-to-string arguments)))) (signs (buffer-string)))))))
        (contexture-conversation--settle-approval approval "done")))))

(ert-deftest contexture-conversation-tool-arguments-hold-nobody ()
  "Only what is shown of them is laid out."
  (contexture-conversation-tool-tests--with '(("A."))
    (dolist (arguments
             (list (concat "{\"a\":[" (mapconcat #'identity (make-list 490000 "1") ",") "]}")
                   (concat (make-string 499990 ?\[) (make-string 499990 ?\]))
                   (concat "[" (apply #'concat (make-list 490000 "\"\",")) "1]")
                   (concat "{\"a\":\"" (apply #'concat (make-list 490000 "\\n")) "\"}")
                   (concat "{\"a\":\"" (make-string 900000 #x202e) "\"}")
                   (concat "{\"a\":" (make-string 990000 ?\s) "1}")
                   (concat (make-string 15000 ?\n) "x" (make-string 900000 ?\n))
                   (concat "{" (make-string 990000 ?\s) "x")
                   (concat "{\"a\":\"x" (make-string 400000 #x301) "\"}")
                   (list :a (make-list 200000 "x"))))
      (contexture-test-at-once
        (contexture-conversation--draw-tool-call (list :tool "t" :arguments arguments)))
      (contexture-test-at-once
        (contexture-conversation--draw-approval
         (list :approval 7 :tool "t" :text "call it" :arguments arguments)))
      (should (< (buffer-size) 200000))
      (let ((approval (car contexture-conversation--approvals)))
        (should (contexture-conversation--approval-cut approval))
        (contexture-conversation--settle-approval approval "done"))
      (let ((inhibit-read-only t))
        (delete-region (point-min) contexture-conversation--tail)))))

;;;; Messages that come back

(ert-deftest contexture-conversation-brings-messages-back-with-one-question ()
  (contexture-conversation-tool-tests--with '(("One.") ("Two."))
    (let ((name (plist-get contexture-conversation--session :session))
          (restore (lambda ()
                     (let ((sent (plist-get (contexture-conversation--chat-params "x" nil)
                                            :restore)))
                       ;; The header counts what would be sent.
                       (should (equal sent (plist-get (contexture-conversation--count-params)
                                                      :restore)))
                       sent))))
      (contexture-conversation-test-send "First")
      (contexture-count--restore name '("msg-1") t)
      (should (equal '("msg-1") (funcall restore)))
      (contexture-conversation-test-send "Second")
      (should (string-search "Two." (contexture-conversation-test-shown)))
      (should-not (funcall restore)))))

;;;; Lines

(ert-deftest contexture-conversation-tool-lines-open-and-close ()
  (contexture-conversation-tool-tests--with
      '(("Look." (call "read" "{\"id\": \"ctx-1\"}")) ("Seen."))
    (contexture-conversation-tools 'allow "read")
    (contexture-request 'add-context
                        (list :manager contexture-context
                              :content "first line of it\nsecond line of it\nthird line"))
    (contexture-test-settle)
    (contexture-conversation-test-send "Look")
    (should (string-match-p "\\+ read: done" (contexture-conversation-test-shown)))
    (contexture-conversation-test-goto "read: done")
    (should (invisible-p (line-beginning-position 2)))
    (call-interactively (key-binding (kbd "RET")))
    (should (string-match-p "- read: done" (contexture-conversation-test-shown)))
    (should-not (invisible-p (line-beginning-position 2)))
    (contexture-conversation-test-goto "second line of it")
    (contexture-conversation-test-goto "read: done")
    (contexture-conversation-toggle-details)
    (should (invisible-p (line-beginning-position 2)))
    (goto-char (point-max))
    (contexture-test-user-error "no details" (contexture-conversation-toggle-details))))

(ert-deftest contexture-conversation-tool-lines-are-there-in-a-session-opened-again ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tools 'allow "add_text")
    (contexture-test-settle)
    (contexture-conversation-test-send "Note it")
    (let ((before (contexture-conversation-test-shown)))
      (should (string-search "\n+ add_text: done\n" before))
      (should (string-match-p "Noted\\.\n2400 tokens in, 68 out, .*\n\\'" before))
      (kill-buffer)
      (contexture-conversation-test-open "talk")
      (should (equal (contexture-conversation-test-shown) before)))
    (should (= (length contexture-conversation--messages) 2))
    (should (equal (contexture-conversation--message-text (car contexture-conversation--messages))
                   "Noted."))))

(ert-deftest contexture-conversation-tool-that-failed-says-why-in-a-session-opened-again ()
  (contexture-conversation-tool-tests--with
      '(("Let me." (call "drop_context" "{\"ids\": [\"ctx-99\"]}")) ("Well."))
    (contexture-conversation-tools 'allow "drop_context")
    (contexture-test-settle)
    (contexture-conversation-test-send "Drop it")
    (kill-buffer)
    (contexture-conversation-test-open "talk")
    (should (string-search "\n  drop_context: no item ctx-99" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tool-of-others-gives-what-it-gave ()
  (contexture-conversation-test-with nil
    (contexture-conversation--draw-log
     '((:id "msg-1" :role :assistant :content "" :tool-calls ((:id "a" :name "run")))
       (:id "msg-2" :role :tool :content "{1}" :tool-call-id "a")
       (:id "msg-3" :role :tool :content "{2}" :tool-call-id "b")))
    (should (string-search "\n  run: {1}\n  a tool: done\n" (contexture-conversation-test-shown)))))

(ert-deftest contexture-conversation-tool-answer-is-what-was-said-last ()
  (contexture-conversation-tool-tests--with contexture-conversation-tool-tests--add
    (contexture-conversation-tools 'allow "add_text")
    (contexture-test-settle)
    (contexture-conversation-test-send "Note it")
    (should (equal (contexture-conversation--message-text (contexture-conversation--last :assistant))
                   "Noted."))
    (with-temp-buffer
      (contexture-insert-last-response)
      (should (equal (buffer-string) "Noted.")))))

(ert-deftest contexture-conversation-tool-turn-can-be-asked-again ()
  (contexture-conversation-tool-tests--with
      (append contexture-conversation-tool-tests--add '(("Not needed.")))
    (contexture-conversation-tools 'allow "add_text")
    (contexture-test-settle)
    (contexture-conversation-test-send "Note it")
    (contexture-conversation-retry)
    (contexture-conversation-test-wait)
    (should (string-match-p "\\`You\nNote it\n\nscripted\nNot needed\\.\n"
                            (contexture-conversation-test-shown)))
    (should-not (string-search "add_text" (contexture-conversation-test-shown)))))

;;;; Which there are

(ert-deftest contexture-conversation-tools-are-those-of-the-server ()
  (contexture-test-with-server
    (contexture-request 'open-session '(:name "s"))
    (dolist (case '((chat :content "x" :tools ("none")) (chat :content "x" :allow ("none"))
                    (configure-session :tools ("none"))
                    (configure-session :allowed-tools ("none"))))
      (let ((problem (should-error (contexture-request (car case) (cdr case))
                                   :type 'contexture-error)))
        (should (string-suffix-p
                 (concat "the tools are " (mapconcat #'car contexture--server-tools ", "))
                 (cadr problem)))))))

(ert-deftest contexture-conversation-tools-are-off-at-first ()
  (contexture-conversation-test-with contexture-conversation-tool-tests--add
    (contexture-conversation-test-send "/tools")
    (should (string-search "Models are offered no tools" (contexture-conversation-test-shown)))
    (should-not (string-search "tools" (contexture-conversation-test-header)))
    (contexture-conversation-test-send "/tools on")
    (llm-ert-wait-for (string-search "tools" (contexture-conversation-test-header)))
    (contexture-conversation-test-send "/tools list")
    (should (string-match-p "  add_file +asks each time" (contexture-conversation-test-shown)))
    (contexture-conversation-test-send "/tools off")
    (llm-ert-wait-for (not (string-search "tools" (contexture-conversation-test-header))))))

(ert-deftest contexture-conversation-tools-allow-and-ask ()
  (contexture-conversation-test-with contexture-conversation-tool-tests--add
    (let ((allowed (lambda () (plist-get contexture-conversation--tool-settings :allowed-tools))))
      (contexture-conversation-test-send "/tools allow list_context")
      (llm-ert-wait-for (equal (funcall allowed) '("list_context")))
      (contexture-conversation-test-send "/tools allow read")
      (llm-ert-wait-for (= (length (funcall allowed)) 2))
      (contexture-conversation-test-send "/tools ask list_context")
      (llm-ert-wait-for (equal (funcall allowed) '("read"))))
    (contexture-conversation-test-type "/tools allow rm")
    (contexture-test-user-error "no tool rm; the tools are list_context" (contexture-conversation-send))
    (contexture-conversation--set-text "/tools maybe")
    (contexture-test-user-error "takes on, off" (contexture-conversation-send))))

(ert-deftest contexture-conversation-tools-complete ()
  (contexture-conversation-test-with contexture-conversation-tool-tests--add
    (contexture-conversation-test-type "/tools al")
    (completion-at-point)
    (should (equal (contexture-conversation--text) "/tools allow"))
    (insert " drop")
    (completion-at-point)
    (should (equal (contexture-conversation--text) "/tools allow drop_context"))))

(ert-deftest contexture-conversation-tools-outlive-the-server ()
  (contexture-conversation-test-with contexture-conversation-tool-tests--add
    (contexture-conversation-tools 'on)
    (contexture-test-settle)
    (contexture-ert-kill-server t)
    (setq contexture-conversation--tool-settings nil)
    (llm-ert-wait-for (not (contexture-running-p)))
    (contexture-request 'ping)
    (llm-ert-wait-for (plist-get contexture-conversation--tool-settings :tools))))

(ert-deftest contexture-conversation-tools-show-the-lines-of-an-argument ()
  (should (equal (contexture-conversation--pretty
                  "{\"form\": \"(f \\n \\\"\\\\n\\\")\\n\\\"x\\\": 1\", \"package\": \"P\"}")
                 "{
  \"form\": \"(f 
            \\\"\\\\n\\\")
           \\\"x\\\": 1\",
  \"package\": \"P\"
}")))

(ert-deftest contexture-conversation-tools-lay-arguments-out-and-change-nothing ()
  (pcase-dolist (`(,json . ,shown)
                 '(("{\"a\":[1,{},[ ], -2.5e3 ,null],\"b\":{\"c\":\"x, [y]: {\"}}"
                    . "{\n  \"a\": [\n    1,\n    {},\n    [],\n    -2.5e3,\n    null\n  ],\n  \"b\": {\n    \"c\": \"x, [y]: {\"\n  }\n}")
                   ;; What is no JSON, or ends too early, is shown as well.
                   ("no, {json}" . "no, {json}")
                   ("[1}, \"a\\" . "[\n  1\n},\n\"a\\")))
    (should (equal (contexture-conversation--pretty json) shown)))
  (let* ((text (concat (make-string 100000 ?x) (mapconcat #'identity (make-list 9999 "a\\\"b") "\\n")))
         (json (format "{\"messages\":[%s]}" (mapconcat #'identity (make-list 2 (concat "\"" text "\"")) ","))))
    (should (equal (replace-regexp-in-string "[ \n]+" "" (contexture-conversation--pretty json))
                   (string-replace "\\n" "" json)))))

(ert-deftest contexture-conversation-tool-arguments-of-any-shape-stay-small ()
  "They are indented, but not by as much as they nest or as a line is long."
  (cl-flet ((nested (open close) (concat "{\"a\": " (apply #'concat (make-list 10000 open))
                                         (apply #'concat (make-list 10000 close)) "}")))
    (dolist (text (list (nested "[" "]") (nested "{\"a\":" "}") (nested "[{\"a\":" "}]") (nested "[" "")
                        (concat "[" (string-join (make-list 20000 "1") ",") "]")
                        (concat "{\"" (make-string 20000 ?k) "\": \""
                                (apply #'concat (make-list 20000 "\\n")) "\"}")
                        (concat "[[[\"" (apply #'concat (make-list 20000 "\\n")) "\"]]]")
                        (concat "[" (make-string 20000 ?\s) "\"" (apply #'concat (make-list 20000 "\\n")))
                        (concat "[" (make-string 20000 ?\")) (concat "[" (make-string 20000 ?\\))
                        (concat "[\"" (make-string 20000 ?\n))
                        (nested "[\"\\n" "\"]")
                        (concat "[" (make-string 1000000 ?\[))))
      (should (< (length (contexture-conversation--pretty text)) (* 50 (length text))))
      (should (string-prefix-p (substring text 0 1) (contexture-conversation--one-line text)))))
  (contexture-test-at-once
    (should (< 55 (string-width (contexture-conversation--one-line (make-string 300000 ?\u65e5))) 61))))

(provide 'contexture-conversation-tool-tests)
;;; contexture-conversation-tool-tests.el ends here
