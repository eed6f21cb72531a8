;;; contexture-visible-tests.el --- Tests that nothing hides in names  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; No control, bidi or invisible character of a name is left in what
;; the package shows, with names in a real server that have all of them.

;;; Code:

(require 'contexture-conversation-test-helper)
(require 'contexture-dashboard)
(require 'contexture-doctor)
(require 'contexture-list)
(require 'contexture-conversations)
(require 'contexture-lisp)
(require 'contexture-sources)

(defconst contexture-visible-tests--hidden
  '(#x1 #x7 ?\n ?\t ?\r #x1b #x1f #x7f #x80 #x85 #x9b #x9f #xad #x34f #x378 #x61c #x115f
    #x1160 #x17b4 #x180b #x180e #x200b #x200c #x200d #x200e #x200f #x2028 #x2029 #x202a
    #x202b #x202c #x202d #x202e #x2060 #x2064 #x2065 #x2066 #x2067 #x2068 #x2069 #x206f
    #x3164 #xfe00 #xfe0f #xfeff #xffa0 #xfff9 #xfffb #xffff #x1d173 #xe0001 #xe0041
    #xe007f #xe0100 #xe01ef #x10ffff)
  "One of each kind at least, and the ends of each range.")

(defconst contexture-visible-tests--ordinary
  '("" "a b\\n.rs" "Größe" "e\u0301" "данные" "文件.txt" "ファイル" "파일" "קובץ" "ملف"
    "ไฟล์" "फ़ाइल" "ഫയൽ" "می\u200cروم" "क्\u200dष" "ක්\u200dෂ" "क्\u200cष"
    "👩\u200d💻" "👩🏽\u200d🚒" "❤\ufe0f\u200d🔥" "🏳\ufe0f\u200d🌈" "1\ufe0f\u20e3"
    "☺\ufe0e" "©\ufe0f" "葛\U000e0100" "∩\ufe00" "\u1820\u180b"
    "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f")
  "Texts that stay as they are.")

(defconst contexture-visible-tests--odd
  '("a\u200cb" "a\u200db" "می\u200c\u200cروم" "م\u200c" "👩\u200d" "1\ufe0f" "a\ufe0f"
    "❤\ufe0f\ufe0f" "é\ufe00" "葛\U000e0100\U000e0101" "🏴\U000e0068\U000e0069\U000e007f"
    "cod\u202esr.exe" "a\nb" "a\e[31mb")
  "Texts in which something hides.")

(defun contexture-visible-tests--name (&optional prefix)
  "Return PREFIX with every hidden character, each between two letters."
  (concat prefix "a" (mapconcat (lambda (char) (string char ?x))
                                contexture-visible-tests--hidden "")))

(defun contexture-visible-tests--check (what text &optional lines)
  "Check that no hidden character is seen raw in TEXT, which is of WHAT.
With LINES non-nil, line ends may be there.  One that has something else
to display is not seen."
  (dotimes (index (length text))
    (let ((char (aref text index)))
      (when (and (memq char contexture-visible-tests--hidden)
                 (not (and lines (eq char ?\n)))
                 (not (stringp (get-text-property index 'display text))))
        (ert-fail (list what 'shows (format "%x" char)
                        (substring-no-properties text (max 0 (- index 30)))))))))

(defun contexture-visible-tests--check-buffers ()
  "Check the text, the name and the header line of each buffer of the package."
  (let ((checked 0))
    (dolist (buffer (buffer-list) checked)
      (with-current-buffer buffer
        (when (string-prefix-p "*contexture" (buffer-name))
          (cl-incf checked)
          (contexture-visible-tests--check 'name (buffer-name))
          (contexture-visible-tests--check (buffer-name) (buffer-string) t)
          (contexture-visible-tests--check (list (buffer-name) 'header)
                                           (format "%s" header-line-format)))))))

(defmacro contexture-visible-tests--completing (&rest body)
  "Run BODY, in which a question ends the command; return what it offered.
That is the prompt and the candidates, with what stands behind them."
  (declare (indent 0) (debug t))
  `(catch 'asked
     (cl-letf (((symbol-function 'completing-read)
                (lambda (prompt table &rest _)
                  (let* ((names (all-completions "" table))
                         (metadata (completion-metadata "" table nil))
                         (annotate (or (completion-metadata-get
                                        metadata 'annotation-function)
                                       (plist-get completion-extra-properties
                                                  :annotation-function)
                                       #'ignore)))
                    (throw 'asked (append (list prompt) names
                                          (mapcar annotate names)))))))
       ,@body
       nil)))

;;;; Texts

(ert-deftest contexture-visible-shows-each-hidden-character ()
  (dolist (char contexture-visible-tests--hidden)
    (let ((shown (contexture--visible (string ?a char ?x))))
      (contexture-visible-tests--check char shown)
      (should (string-match-p "\\`a\\\\\\(u{[0-9a-f]+}\\|[nrt]\\)x\\'" shown))))
  (should (equal (contexture--visible "a\nb\t\u202e" t) "a\nb\t\\u{202e}"))
  (should-not (contexture--visible nil)))

(ert-deftest contexture-visible-leaves-ordinary-text ()
  (dolist (text contexture-visible-tests--ordinary)
    (should (eq (contexture--visible text) text)))
  (dolist (text contexture-visible-tests--odd)
    (should-not (equal (contexture--visible text) text))))

(ert-deftest contexture-visible-is-as-the-server-has-it ()
  (contexture-test-with-server
    (dolist (name (append contexture-visible-tests--odd
                          (remove "" contexture-visible-tests--ordinary)
                          (mapcar (lambda (char) (string ?a char ?x))
                                  contexture-visible-tests--hidden)))
      (contexture-request 'clear-context '(:manager "m"))
      (contexture-request 'add-context (list :manager "m" :content "x"
                                             :metadata (list :filename name)))
      (should (string-match "(from \\(.*\\))" (contexture-request
                                               'context-to-string '(:manager "m"))))
      (let ((shown (contexture-request 'context-to-string '(:manager "m"))))
        (should (string-search (format "(from %s)" (contexture--visible name)) shown))))))

(ert-deftest contexture-visible-candidate-keeps-its-text ()
  (let* ((name (contexture-visible-tests--name))
         (shown (contexture--visible-candidate name)))
    (should (equal shown name))
    (contexture-visible-tests--check 'candidate shown)))

(ert-deftest contexture-visible-buffer-keeps-its-text ()
  (with-temp-buffer
    (insert "if (a\u202e) // 👩\u200d💻 \u200b\n")
    (let ((text (buffer-substring-no-properties (point-min) (point-max))))
      (contexture--show-hidden)
      (should (equal (mapcar (lambda (at) (get-text-property at 'display)) '(6 13 16))
                     '("\\u{202e}" nil "\\u{200b}")))
      (should (equal text (buffer-substring-no-properties (point-min) (point-max)))))))

(ert-deftest contexture-visible-buffer-knows-what-came-later ()
  (with-temp-buffer
    (insert "👩\u200d")
    (contexture--show-hidden)
    (should (equal (get-text-property 2 'display) "\\u{200d}"))
    (insert "💻")
    (contexture--show-hidden)
    (should-not (get-text-property 2 'display))))

;;;; Commands

(defun contexture-visible-tests--fill (name file)
  "Have everything in the server that a NAME can be of, with an item of FILE."
  (contexture-request 'add-context
                      (list :manager name :content "x"
                            :metadata (list :filename file :symbol name :start-line 1
                                            :end-line 2 :origin :symbol)))
  (contexture-request 'save-set (list :manager name :name name))
  (contexture-request 'open-session (list :name name :project file :manager name))
  (contexture-request
   'add-message
   (list :messages (vector (list :role :user :content "say needle")
                           (list :role :assistant :content "needle"
                                 :tool-calls (vector (list :id name :name name
                                                           :arguments "{}")))
                           (list :role :tool :content "z" :tool-call-id name))))
  (contexture-request 'checkpoint (list :message name))
  (contexture-request 'build-context '(:brief t)))

(ert-deftest contexture-visible-in-every-list-and-heading ()
  (contexture-test-with-server
    (save-window-excursion
      (let* ((name (contexture-visible-tests--name))
             (file (contexture-visible-tests--name "/tmp/"))
             (contexture-context name)
             messages)
        (contexture-visible-tests--fill name file)
        (cl-letf* ((message (symbol-function 'message))
                   ((symbol-function 'message)
                    (lambda (string &rest arguments)
                      (when string
                        (push (apply #'format-message string arguments) messages))
                      (apply message string arguments))))
          (contexture-list name)
          (llm-ert-wait-for (buffer-local-value 'contexture-list--items
                                                       (get-buffer contexture-list-buffer)))
          (contexture-preview name)
          (contexture-info)
          (contexture-dashboard)
          (contexture-explain)
          (contexture-conversation-transcript name)
          (contexture-conversation-search "needle")
          (contexture-conversation-notes name)
          (contexture-test-settle)
          (contexture-test-settle)
          (should (>= (contexture-visible-tests--check-buffers) 7))
          (let ((contexture-context "other"))
            (contexture--add (list :type :text :content "y"
                                   :metadata (list :filename file :symbol name))))
          (contexture-conversation-rename name (concat name "2"))
          (contexture-test-settle)
          (ignore-errors (contexture-conversation-make-current (concat name "none")))
          (contexture-test-settle)
          (contexture-clear)
          (contexture-undo)
          (contexture-save-set name)
          (contexture-test-settle))
        (should (> (length messages) 3))
        (dolist (text messages)
          (contexture-visible-tests--check 'message text))))))

(ert-deftest contexture-visible-names-in-the-mode-line-are-only-shown ()
  (dolist (name '("%999999999b" "c %-" "%%%%%%%%%%%%%%%%%%%%%%" "a%" "%e"))
    (let ((contexture-context name))
      (dolist (label (list nil (concat name name) (concat "c " name)))
        (let ((contexture--labels (make-hash-table :test #'equal)))
          (when label (puthash name label contexture--labels))
          (let ((text (contexture--lighter)))
            (should (string-search "%%" text))
            (should-not (string-search "%" (string-replace "%%" "" text)))))))))

(ert-deftest contexture-visible-in-every-choice ()
  (contexture-test-with-server
    (let* ((name (contexture-visible-tests--name))
           (file (contexture-visible-tests--name "/tmp/"))
           (contexture-context name))
      (contexture-visible-tests--fill name file)
      (dolist (command (list (lambda () (contexture-sets--read-manager))
                             (lambda () (contexture-sets--read-set "Set" t))
                             (lambda () (contexture-conversations--read "Conversation"))
                             (lambda () (contexture--read-manager t))
                             (lambda () (call-interactively #'contexture-remove))
                             (lambda () (contexture-conversations--read-checkpoint "Back to"))
                             (lambda () (contexture-conversations--read-revision))
                             (lambda () (contexture-conversation--read-session))))
        (let ((offered (contexture-visible-tests--completing (funcall command))))
          (should (cdr offered))
          (dolist (text (delq nil offered))
            (contexture-visible-tests--check command text)))))))

;;;; What a server says

(defmacro contexture-visible-tests--said (&rest body)
  "Run BODY; return the messages that it shows, the last one first."
  (declare (indent 0) (debug t))
  `(let (said)
     (cl-letf (((symbol-function 'message)
                (lambda (string &rest arguments)
                  (push (apply #'format-message string arguments) said))))
       ,@body)
     said))

(ert-deftest contexture-visible-in-what-is-said-of-a-provider ()
  (let* ((name (contexture-visible-tests--name))
         (contexture-provider--awaited (list (cons name name)))
         (contexture-provider--problems nil)
         (contexture-providers nil)
         asked)
    (cl-letf (((symbol-function 'contexture--later) #'funcall)
              ((symbol-function 'contexture-request-async)
               (lambda (_ _ &rest keys) (funcall (plist-get keys :error) (list :message name))))
              ((symbol-function 'completing-read)
               (lambda (prompt &rest _) (push prompt asked) "m")))
      (let ((said (contexture-visible-tests--said
                    (contexture-provider--accepted name)
                    (contexture-provider--choose-model name nil name)
                    (contexture-provider--failed name name))))
        (should (= (length said) 3))
        (should (= (length asked) 1))
        (dolist (text (append asked said))
          (contexture-visible-tests--check 'provider text))))))

(ert-deftest contexture-visible-in-errors-of-the-server ()
  (contexture-test-with-server
    (cl-letf* ((name (remove ?\t (contexture-visible-tests--name)))
               ((symbol-function 'contexture--call)
                (lambda (_ _ _ _ failure)
                  (funcall failure (list :message name :code -32000)) 1)))
      (contexture-current-connection)
      (contexture-visible-tests--check
       'error (cadr (should-error (contexture-request 'ping) :type 'contexture-error))
       t))))

(ert-deftest contexture-visible-in-texts-that-are-looked-through ()
  (llm-ert-with-files '(("a.md" . "be \u202ekind\n"))
    (save-window-excursion
      (let ((text "be \u202ekind"))
        (contexture-trust--show (list (expand-file-name "a.md")))
        (contexture-conversations--show-summary text)
        (contexture-conversation--show-preview
         (list :payload text :tokens 42 :max-tokens 8192
               :messages '(:sent 1 :of 1 :shortened 0)
               :parts (list (list :section text :role text :id text))))
        (dolist (buffer (list contexture-trust-buffer "*contexture: summary*"
                              contexture-conversation-preview-buffer))
          (with-current-buffer buffer
            (should (string-search "kind" (buffer-string)))
            (contexture-visible-tests--check buffer (buffer-string) t)))))))

(ert-deftest contexture-visible-in-a-proposal-an-import-and-an-edit ()
  ;; Emacs shows control characters as ^A, and those that are not assigned as a box.
  (let ((text (cl-remove-if-not (lambda (char)
                                  (or (= char ?x)
                                      (string-match-p contexture-visible--ignorable (string char))))
                                (contexture-visible-tests--name))))
    (should (> (length text) 20))
    (with-temp-buffer
      (insert "if (admin) { old }\n")
      (emacs-lisp-mode)
      (let ((proposal (contexture-review--make-proposal
                       (point-min) (point-max) (concat "if (" text ") {}\n"))))
        (unwind-protect
            (with-current-buffer proposal
              (should (string-search text (buffer-string)))
              (contexture-visible-tests--check 'proposal (buffer-string) t))
          (kill-buffer proposal)))
      (dolist (mode '("emacs-lisp-mode" "org-mode" nil))
        (let ((edit (contexture-list-item--make-edit-buffer
                     (list :id "ctx-1" :content text :metadata (list :mode mode)))))
          (unwind-protect
              (with-current-buffer edit
                (should (equal text (buffer-substring-no-properties (point-min) (point-max))))
                (ignore-errors (font-lock-ensure))
                (contexture-visible-tests--check 'edit (buffer-string) t))
            (with-current-buffer edit (set-buffer-modified-p nil))
            (kill-buffer edit))))
      (erase-buffer)
      (contexture-import--insert
       (list :state :new :session text :path text
             :left-out (list (list :count 1 :kind text :reason text))))
      (contexture-visible-tests--check 'import (buffer-string) t))))

(ert-deftest contexture-visible-in-definitions-to-choose-from ()
  (let* ((name (contexture-visible-tests--name))
         (found (list (cons name 1) (cons "other" 2))))
    (cl-letf (((symbol-function 'contexture-symbol--marker) #'identity)
              ((symbol-function 'contexture-symbol--choice) #'car))
      (dolist (text (contexture-visible-tests--completing
                      (contexture-symbol--choose found)))
        (when text (contexture-visible-tests--check 'definition text))))))

;;;; What a model asks for

(ert-deftest contexture-visible-in-what-a-model-wants-to-do ()
  ;; A script is TOML, which has no #x7f.
  (let* ((name (remq #x7f (append (contexture-visible-tests--name) nil)))
         (name (concat name))
         (arguments (json-encode (list (cons 'content (concat "rm \u202e" name))))))
    (contexture-conversation-test-with `(("Let me." (call "add_text" ,arguments)) ("Done."))
      (contexture-conversation-tools 'on)
      (llm-ert-wait-for (plist-get contexture-conversation--tool-settings :tools))
      (contexture-conversation-test-type "Do it")
      (contexture-conversation-send)
      (contexture-conversation-test-await-request)
      (contexture-visible-tests--check 'block (buffer-string) t)
      (should (string-search "rm \\u{202e}" (buffer-string)))
      (contexture-conversation-view-approval)
      (with-current-buffer contexture-conversation-approval-buffer
        (contexture-visible-tests--check 'approval (buffer-string) t)
        (run-hooks 'pre-command-hook))
      (contexture-conversation-approve 'once)
      (contexture-conversation-test-wait)
      (contexture-visible-tests--check 'line (buffer-string) t)
      (should (string-search name (plist-get (car (contexture-test-items contexture-context))
                                             :content))))))

(ert-deftest contexture-visible-long-texts-are-as-short-ones ()
  (let ((text (apply #'concat (make-list 300 "a\u202eb👩‍💻 é\u200b\n"))))
    (should (> (length text) contexture-visible--most))
    (dolist (lines '(nil t))
      (should (equal (contexture--visible text lines)
                     (contexture-visible--escaped
                      text (if lines contexture-visible--candidate-in-lines
                             contexture-visible--candidate)))))))

(ert-deftest contexture-visible-makes-few-escapes-of-many-hidden-characters ()
  "Without a bound, a megabyte of each of these texts takes minutes."
  (dolist (char contexture-visible-tests--hidden)
    (dolist (more '("" "文"))
      (let* ((unit (concat (string char) more))
             (text (apply #'concat (make-list (/ 12000 (length unit)) unit)))
             (lines (memq char '(?\n ?\t)))
             (shown (contexture--visible text)))
        (unless (cl-some (pcase-lambda (`(,from . ,to)) (<= from char to))
                         contexture-visible--joining)
          (when (string-search (string char) shown) (ert-fail (list 'left char more))))
        (unless (< (length shown) (+ (length text) (* 10 contexture-visible--most)))
          (ert-fail (list 'long char more)))
        (when (and lines (not (equal text (contexture--visible text t))))
          (ert-fail (list 'lines char more)))
        (with-temp-buffer
          (insert text)
          (contexture--show-hidden)
          (unless (equal text (buffer-substring-no-properties (point-min) (point-max)))
            (ert-fail (list 'changed char more)))
          (when (memq char '(#x202e #x2067 #xe0041 #x200b #xad))
            (should (aref buffer-display-table char))
            (should (eq (null bidi-display-reordering) (and (memq char '(#x202e #x2067)) t))))))))
  ;; Ordinary text with very many joiners stays as it is.
  (dolist (unit '("می\u200cروم " "क्\u200dष " "👩\u200d💻 "))
    (let ((text (apply #'concat (make-list 4000 unit))))
      (unless (equal text (contexture--visible text)) (ert-fail unit)))))

(ert-deftest contexture-visible-space-at-the-end-is-cut-at-once ()
  (dolist (text '("" " " "a" " a " "a b\n\t\r " "\n\n" "\u00e9 \n" "a\u00a0"))
    (should (equal (contexture--trim-right text) (string-trim-right text)))
    (should (equal (contexture--trim-right text "\n") (string-trim-right text "\n+"))))
  (let ((space (concat (make-string 300000 ?\n) "x" (make-string 300000 ?\s) "x")))
    (contexture-test-at-once
      (should (equal space (contexture--trim-right (concat space "\n \n")))))
    (contexture-test-at-once
      (contexture-conversations--message-text (list :role :user :content space)))
    (contexture-test-at-once
      (contexture-conversation--fit space "")))
  ;; What comes from outside is trimmed in no other way.
  (dolist (file (directory-files contexture--directory t "\\`contexture.*\\.el\\'"))
    (with-temp-buffer
      (insert-file-contents file)
      (should-not (re-search-forward "(string-trim\\(?:-right\\)?[ \n]+(\\(?:or (\\)?plist-get" nil t)))))

(ert-deftest contexture-visible-messages-are-short ()
  (let ((long (make-string 1000000 ?x)))
    (dolist (text (append (contexture-visible-tests--said
                            (contexture--message "%s" long)
                            (contexture-show-error (list :message long)))
                          (list (cadr (should-error (contexture--user-error "No %s" long))))))
      (should (< (length text) (+ 100 contexture--longest-message))))))

(provide 'contexture-visible-tests)
;;; contexture-visible-tests.el ends here
